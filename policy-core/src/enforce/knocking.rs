//! Who comes to a door, and what the account's door answers: the gates, the list of the policy and the cheap routes
//! together.

use policy_config::{Admit, DoorMethod};

use crate::core::Core;
use crate::ledger::PurseId;

use super::door::{Answer, BUSY, Request, UNAVAILABLE};
use super::gate::Gate;
use super::refusal_details::RefusalDetails;

impl Core {
    /// Whether any request must [`Core::knock`]: some account's door is shut. One load. Any thread.
    #[must_use]
    pub fn any_shut(&self) -> bool {
        self.enforcement.gates.is_any_asked()
    }

    /// Whether a request for the service of `payer` must [`Core::knock`]: its own door is shut, and is not at methods
    /// alone. A few loads. Any thread.
    #[must_use]
    pub fn is_asked(&self, payer: PurseId) -> bool {
        let account = self.identity.representative(payer);
        let gate = self.enforcement.gates.get(account);
        gate.is_some_and(Gate::asks) && !self.has_method_doors_alone(account)
    }

    fn has_method_doors_alone(&self, account: u32) -> bool {
        let details = self.enforcement.details.get(account);
        details.is_some_and(|details| {
            (details.as_ref()).is_some_and(|details| details.method_doors.are_the_only_ones)
        })
    }

    /// Answers a request for the service of `payer`; counts it if it is turned away. Takes no lock. On the thread of
    /// the request.
    pub fn knock(&self, payer: PurseId, request: Request<'_>, now_ms: u64) -> Answer {
        self.answer(payer, request, now_ms, Gate::asks, Gate::knock)
    }

    /// Answers a program that asks whether to take on new work for the account of `payer`; counts the work if it is
    /// turned away. `payer` is the purse that [`Core::refuser`] found. Takes no lock. Any thread.
    pub fn ask(&self, payer: PurseId, request: Request<'_>, now_ms: u64) -> Answer {
        self.answer(payer, request, now_ms, Gate::refuses, Gate::ask)
    }

    /// Whether the account of `payer` is over its limit and refused, and turns calls away at this method. Some
    /// loads, no lock. Any thread.
    #[must_use]
    pub fn refuses_at(&self, payer: PurseId, method: &DoorMethod) -> bool {
        let account = self.identity.representative(payer);
        let gate = self.enforcement.gates.get(account);
        gate.is_some_and(Gate::refuses) && self.has_door_at(payer, method)
    }

    /// Whether the policy has put a door of the account of `payer` at this method. No lock. Any thread.
    #[must_use]
    pub fn has_door_at(&self, payer: PurseId, method: &DoorMethod) -> bool {
        let account = self.identity.representative(payer);
        let details = self.enforcement.details.get(account);
        details.is_some_and(|details| {
            (details.as_ref()).is_some_and(|details| details.method_doors.methods.contains(method))
        })
    }

    fn answer(
        &self,
        payer: PurseId,
        request: Request<'_>,
        now_ms: u64,
        is_shut: fn(&Gate) -> bool,
        ask: fn(&Gate, u64, bool) -> Answer,
    ) -> Answer {
        let account = self.identity.representative(payer);
        let Some(gate) = self.enforcement.gates.get(account) else {
            return Answer::In;
        };
        if !is_shut(gate) || self.has_failed() {
            return Answer::In;
        }
        let details = self.enforcement.details.get(account);
        let is_listed = details.is_some_and(|details| {
            let listed = |admit: &Admit| admit.matches(request.method, request.path);
            (details.as_ref()).is_some_and(|details| details.admit.iter().any(listed))
        });
        if is_listed {
            return Answer::In;
        }
        let routes = &self.enforcement.routes;
        if let Some(ticket) = routes.let_in(self, request.route, account) {
            return Answer::Free(ticket);
        }
        let answer = ask(gate, now_ms, request.lets_go());
        // The gate may have got another account meanwhile: its word first, then whether it is still this
        // one's (rule 6 of the gates).
        if self.identity.representative(payer) == account {
            if matches!(answer, Answer::Away { .. }) {
                routes.turned_away(request.route);
            }
            return answer;
        }
        if let Answer::Probe(ticket) = answer {
            gate.probe_ended(ticket, now_ms);
        }
        Answer::In
    }

    /// The gate whose probe is the work with this mark: that of the payer's account, or of the service around it. Some
    /// loads, no lock. Any thread.
    #[must_use]
    pub fn gate_of_work(&self, payer: PurseId, mark: u32) -> Option<&Gate> {
        let service = self.identity.above(payer);
        let accounts = [
            Some(self.identity.representative(payer)),
            service.map(|service| u32::from(service.get())),
        ];
        let mut gates = accounts.into_iter().flatten();
        gates.find_map(|account| {
            let gate = self.enforcement.gates.get(account);
            gate.filter(|gate| gate.door().is_inside(mark))
        })
    }

    /// The thread of the probe with this mark was charged so much, for the account of `payer` or the service around it.
    /// Nothing if that probe is not inside. Some loads, no lock. On that thread.
    pub fn charge_probe(&self, payer: PurseId, mark: u32, charged_bytes: u64) {
        if let Some(gate) = self.gate_of_work(payer, mark) {
            gate.charge_probe(charged_bytes);
        }
    }

    /// The status of HTTP with which the door of the service of `payer` turns requests away. No lock. Any thread.
    #[must_use]
    pub fn status_at_door(&self, payer: PurseId) -> u16 {
        let account = self.identity.representative(payer);
        let details = self.enforcement.details.get(account);
        let of = |details: &Option<_>| {
            details
                .as_ref()
                .map(|details: &std::sync::Arc<RefusalDetails>| details.status)
        };
        details
            .and_then(|details| of(&details))
            .unwrap_or(UNAVAILABLE)
    }

    /// The request with this ticket, let into the service of `payer` as a probe or freely, has ended. Any thread.
    pub fn probe_ended(&self, payer: PurseId, ticket: u64, now_ms: u64) {
        self.leave(payer, ticket, |gate| gate.probe_ended(ticket, now_ms));
    }

    /// The same of a request that goes on elsewhere, unseen. Any thread.
    pub fn probe_begun(&self, payer: PurseId, ticket: u64, now_ms: u64) {
        self.leave(payer, ticket, |gate| gate.probe_begun(ticket, now_ms));
    }

    fn leave(&self, payer: PurseId, ticket: u64, leave: impl FnOnce(&Gate)) {
        // A probe's ticket is a busy word.
        if ticket & BUSY == 0 {
            self.enforcement.routes.ended(ticket);
            return;
        }
        let account = self.identity.representative(payer);
        if let Some(gate) = self.enforcement.gates.get(account) {
            leave(gate);
        }
    }
}
