//! Who keeps memory alive: walks of the heap that a command asks for, or the policy for a suspect.
//!
//! `heapwarden paths` and `holders` load the library once more through HotSpot's attach protocol, with the option
//! `command=FOLDER`. [`command`] reads the question from the folder, and answers through a socket in it. A thread of
//! its own does the work, one at a time; the walk itself is [`policy_jvm::forked_walk`]. Here is what it has to
//! know: which classes and threads there are ([`survey`]), what is looked for ([`targets`]), and what the answer is
//! called ([`chains`], [`holders`]). Where it cannot fork, [`in_place`] decides for what the world is stopped.

mod answering;
mod automatic;
mod chains;
mod command;
mod holders;
mod in_place;
mod outcome;
mod survey;
mod targets;
mod tries;

pub(crate) use answering::Walks;
pub(crate) use automatic::consider;
pub(crate) use command::command;
