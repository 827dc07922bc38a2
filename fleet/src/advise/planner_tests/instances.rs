//! Random fleets, the same for the same seed.

use super::{Jvm, Service};

/// The size of a random fleet, and its mix of services.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Pressed JVMs.
    pub(super) pressed: usize,
    /// The others.
    pub(super) others: usize,
    /// Services of each JVM.
    pub(super) services: usize,
    /// The others' room in percent of what the pressed ones have too much, more or less: 100 is
    /// just too little, as a service needs more where it goes than it frees.
    pub(super) room_percent: u64,
    /// Of a hundred services, how many are replicas: of one of a few names that are everywhere.
    pub(super) replicas_percent: u64,
    /// Bytes in a unit; services have 4 to 700 units.
    pub(super) unit: u64,
}

impl Shape {
    /// So many pressed JVMs, other JVMs and services of each; room for everybody twice over.
    pub(super) const fn of(pressed: usize, others: usize, services: usize) -> Shape {
        Shape {
            pressed,
            others,
            services,
            room_percent: 300,
            replicas_percent: 0,
            unit: 1,
        }
    }

    pub(super) const fn with_room(self, room_percent: u64) -> Shape {
        Shape {
            room_percent,
            ..self
        }
    }

    pub(super) const fn with_replicas(self, replicas_percent: u64) -> Shape {
        Shape {
            replicas_percent,
            ..self
        }
    }
}

/// A fleet of that shape.
pub(super) fn fleet(shape: Shape, seed: u64) -> Vec<Jvm> {
    let mut chance = Chance(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let mut fleet = Vec::new();
    let mut excess = 0;
    for index in 0..shape.pressed {
        let jvm = jvm(shape, index, &mut chance);
        let held = jvm.held_bytes;
        let above = held * chance.between(5, 35) / 100;
        excess += above;
        fleet.push(Jvm {
            capacity_bytes: held - above,
            ..jvm
        });
    }
    for index in 0..shape.others {
        let jvm = jvm(shape, shape.pressed + index, &mut chance);
        let mean = excess * shape.room_percent / 100 / shape.others.max(1) as u64;
        let room = mean * chance.between(20, 180) / 100;
        let upper = jvm.held_bytes * 11 / 10;
        fleet.push(Jvm {
            capacity_bytes: upper + room,
            held_upper_bytes: upper,
            ..jvm
        });
    }
    fleet
}

/// Returns the bytes that the pressed JVMs of a fleet hold too much.
pub(super) fn excess_bytes(fleet: &[Jvm]) -> u64 {
    fleet
        .iter()
        .map(|jvm| jvm.held_bytes.saturating_sub(jvm.capacity_bytes))
        .sum()
}

/// A JVM that holds its services and some more, and may hold exactly that.
fn jvm(shape: Shape, index: usize, chance: &mut Chance) -> Jvm {
    let mut services = Vec::new();
    let mut accounts = vec!["_unaccounted".to_owned()];
    let mut held = chance.between(20, 60) * shape.unit;
    for number in 0..shape.services {
        let replica = format!("replica-{number}");
        let name = if chance.between(0, 99) < shape.replicas_percent {
            replica
        } else {
            format!("jvm-{index}-service-{number}")
        };
        // Many small services, few large ones.
        let exponent = chance.between(0, 5);
        let holds = (chance.between(4, 22) << exponent) * shape.unit;
        held += holds;
        accounts.push(name.clone());
        services.push(Service {
            name,
            frees_bytes: holds * chance.between(80, 100) / 100,
            needs_bytes: holds * chance.between(100, 140) / 100,
        });
    }
    Jvm {
        capacity_bytes: held,
        held_bytes: held,
        held_upper_bytes: held,
        accounts,
        services,
    }
}

/// Marsaglia's xorshift, 64 bits.
struct Chance(u64);

impl Chance {
    fn between(&mut self, low: u64, high: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        low + (self.0 >> 24) % (high - low + 1)
    }
}
