//! An allocation, from the sample to the charge and past the gates: whose it is, by loader, class, scope and stack, and
//! what its stack allows. On the thread that allocates; classes, methods and stacks that it meets are named later.

pub(crate) mod method_inspection;
pub(crate) mod payer;
pub(crate) mod recognizer;
pub(crate) mod sample;
pub(crate) mod sampled_thread;
pub(crate) mod scan;
pub(crate) mod site_stack;
pub(crate) mod stack;
pub(crate) mod stack_judge;
