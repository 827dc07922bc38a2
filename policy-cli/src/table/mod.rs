//! Accounts as rows of a table: its columns, the format of amounts, the order of rows. Shared by
//! `status`, and by `top` in a terminal and in a pipe.

pub(crate) mod amount;
pub(crate) mod bins;
mod column;
mod grid;
mod plain;
mod row;

pub(crate) use column::{Align, Column};
pub(crate) use grid::write_grid;
pub(crate) use plain::{layout, write_rows};
pub(crate) use row::{Rates, Row};
