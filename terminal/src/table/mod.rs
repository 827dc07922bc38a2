//! Accounts as rows of a table: its columns, the format of amounts, the order of rows. Shared by
//! `status`, and by `top` in a terminal and in a pipe.

pub mod amount;
pub mod bins;
mod column;
mod grid;
mod plain;
mod row;

pub use column::{Align, Column};
pub use grid::Grid;
pub use plain::{layout, write_rows};
pub use row::{Rates, Row};
