//! Who pays for what the calling thread takes now: [`crate::identity::attribution`], and the route that it is in.

use policy_jvm::Ref;
use policy_jvm::kinds::Thread;

use crate::ground::Ground;
use crate::identity::attribution::{Attribution, Needs, attribute};
use crate::ledger::PurseId;

use super::recognizer::Recognizer;
use super::stack::JavaThread;

/// Who pays, as samples are charged. `asked` is the calling thread, `thread` its object.
#[inline]
pub(crate) fn of(
    recognizer: Recognizer<'_>,
    needs: Needs,
    thread: Option<&Ref<'_, Thread>>,
    asked: &mut JavaThread<'_>,
) -> Attribution {
    let ground = recognizer.ground;
    let attribution = attribute(needs, asked);
    Attribution {
        payer: match ground.core.enforcement.routes.in_use() {
            true => routed(ground, thread, attribution.payer),
            false => attribution.payer,
        },
        ..attribution
    }
}

/// The purse of the route that the thread is in, if it belongs to the account that pays; otherwise `payer`. A
/// route never changes which account pays.
fn routed(ground: &Ground, thread: Option<&Ref<'_, Thread>>, payer: PurseId) -> PurseId {
    let inside = ground.bridge().zip(thread);
    let inside = inside.map(|(bridge, thread)| bridge.thread_scopes().routes(thread));
    let identity = &ground.core.identity;
    let account = identity.representative(payer);
    if account == u32::from(PurseId::UNACCOUNTED.get()) {
        return payer;
    }
    let routes = &ground.core.enforcement.routes;
    inside
        .and_then(|inside| {
            inside.charged(|number| {
                let purse = routes.purse(number)?;
                (identity.representative(purse) == account).then_some(purse)
            })
        })
        .unwrap_or(payer)
}
