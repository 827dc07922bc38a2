//! Names, amounts and tables as the command prints them. Names come from tenants: nothing of theirs can control a
//! terminal.

pub mod clock;
pub mod deployment;
pub mod json_line;
pub mod output;
pub mod printable;
pub mod size;
pub mod table;
