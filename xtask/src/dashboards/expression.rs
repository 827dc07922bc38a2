//! Expressions that several panels have.

/// Live bytes as limits are about them: of an account with the scopes beneath it, where it has any.
const WHOLE: &str = "(heapwarden_account_tree_live_bytes{@} or heapwarden_account_live_bytes{@})";

/// Their growth in bytes a second. The first scope of an account begins a line of its own; after
/// the last one has gone, that line is over.
const GROWTH: &str = "(deriv(heapwarden_account_tree_live_bytes{@}[1h]) \
    and heapwarden_account_tree_live_bytes{@} or deriv(heapwarden_account_live_bytes{@}[1h]))";

/// Limits that bind by themselves: those of scopes beneath an account with a limit are within it.
const OUTER_LIMITS: &str = "(heapwarden_account_limit_bytes{@} unless on (job, instance, account) \
    (heapwarden_account_info{@,parent!=\"\"} and on (job, instance, parent) \
    label_join(heapwarden_account_limit_bytes{@}, \"parent\", \"\", \"account\")))";

/// The expression with `@whole`, `@growth` and `@outer_limits` written out over `accounts` and `jvms`.
pub(super) fn written_out(expression: &str, accounts: &str, jvms: &str) -> String {
    expression
        .replace("@whole", &WHOLE.replace('@', accounts))
        .replace("@growth", &GROWTH.replace('@', accounts))
        .replace("@outer_limits", &OUTER_LIMITS.replace('@', jvms))
}
