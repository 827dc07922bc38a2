//! Accounts as rows of a table: what the columns are, how their amounts are written, in what
//! order rows come. Shared by `status`, and by `top` in a terminal and in a pipe.

pub(crate) mod amount;
mod column;
mod plain;
mod row;

pub(crate) use column::{Align, Column};
pub(crate) use plain::{layout, write_rows};
pub(crate) use row::{Rates, Row};
