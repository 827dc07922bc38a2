//! The fleet's commands: what many JVMs had over a time, as Prometheus has recorded it. Which service should move, which
//! limits fit, and whom a policy would have refused.

pub mod advise;
pub mod history;
pub mod policy;
pub mod prometheus;
pub mod replay;
pub mod suggest;

use heapwarden_client::{http, live};
use heapwarden_terminal::{clock, deployment, output, printable, size, table};
