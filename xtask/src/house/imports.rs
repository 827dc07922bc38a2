//! Which file of a crate takes something from which.

use std::collections::BTreeMap;
use std::path::PathBuf;

use syn::visit::{self, Visit};
use syn::{ImplItem, Item, ItemUse, UseTree, Visibility};

use super::circles::Arrows;
use super::modules::{Module, Name, is_test};

type Modules = BTreeMap<Name, Module>;

/// All arrows between the files of a crate.
pub(super) fn arrows(modules: &Modules) -> Arrows {
    let passed_on = passed_on(modules);
    let mut arrows = Arrows::new();
    for (name, module) in modules {
        let mut reader = Reader {
            modules,
            passed_on: &passed_on,
            here: name,
            depth: 0,
            found: Vec::new(),
        };
        reader.visit_file(&module.file);
        let targets = arrows.entry(module.path.clone()).or_default();
        targets.extend(reader.found);
        targets.remove(&module.path);
    }
    arrows
}

/// Names that a module has from another, for itself or for others: the module and the name, to what they stand for.
fn passed_on(modules: &Modules) -> BTreeMap<(Name, String), Name> {
    let mut all = BTreeMap::new();
    for (name, module) in modules {
        for item in &module.file.items {
            let Item::Use(item) = item else { continue };
            if is_test(&item.attrs) {
                continue;
            }
            for (path, given) in leaves(&item.tree) {
                if let Some(path) = absolute(modules, name, &path) {
                    all.insert((name.clone(), given), path);
                }
            }
        }
    }
    all
}

/// The paths of a `use`, each with the name that it gives.
fn leaves(tree: &UseTree) -> Vec<(Name, String)> {
    match tree {
        UseTree::Path(path) => {
            let mut inner = leaves(&path.tree);
            for (rest, _) in &mut inner {
                rest.insert(0, path.ident.to_string());
            }
            inner
        }
        UseTree::Name(name) if name.ident == "self" => vec![(Vec::new(), String::new())],
        UseTree::Name(name) => vec![(vec![name.ident.to_string()], name.ident.to_string())],
        UseTree::Rename(name) => vec![(vec![name.ident.to_string()], name.rename.to_string())],
        UseTree::Glob(_) => vec![(vec!["*".into()], "*".into())],
        UseTree::Group(group) => group.items.iter().flat_map(leaves).collect(),
    }
}

/// `path`, written in the module `here`, from the crate's root; `None` if it leads to another crate or to what the
/// file itself has.
fn absolute(modules: &Modules, here: &Name, path: &[String]) -> Option<Name> {
    let (first, rest) = path.split_first()?;
    let mut name = here.clone();
    match first.as_str() {
        "crate" => name.clear(),
        "self" => {}
        "super" => {
            name.pop();
        }
        child => {
            name.push(child.to_owned());
            modules.get(&name)?;
        }
    }
    for part in rest {
        match part.as_str() {
            "super" => {
                name.pop();
            }
            part => name.push(part.to_owned()),
        }
    }
    Some(name)
}

struct Reader<'a> {
    modules: &'a Modules,
    passed_on: &'a BTreeMap<(Name, String), Name>,
    here: &'a Name,
    /// How many modules within the file are open.
    depth: usize,
    found: Vec<PathBuf>,
}

impl Reader<'_> {
    fn take(&mut self, path: &[String]) {
        // Within a module of the file, its first `super` is the file itself.
        let ups = path.iter().take_while(|part| *part == "super").count();
        let path = match ups.min(self.depth) {
            0 => path,
            within if ups == within => return,
            within => &path[within..],
        };
        if let Some(name) = absolute(self.modules, self.here, path) {
            self.found.extend(self.file_of(name, 0));
        }
    }

    /// The file that has what `name` stands for.
    fn file_of(&self, name: Name, passed: usize) -> Option<PathBuf> {
        const MAX_PASSED: usize = 8;
        let module = (0..=name.len())
            .rev()
            .find(|&length| self.modules.contains_key(&name[..length]))?;
        if passed < MAX_PASSED && module < name.len() {
            let key = (name[..module].to_vec(), name[module].clone());
            if let Some(other) = self.passed_on.get(&key) {
                let mut other = other.clone();
                other.extend_from_slice(&name[module + 1..]);
                return self.file_of(other, passed + 1);
            }
        }
        Some(self.modules[&name[..module]].path.clone())
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes = match item {
            Item::Mod(item) => &item.attrs,
            Item::Fn(item) => &item.attrs,
            Item::Impl(item) => &item.attrs,
            Item::Use(item) => &item.attrs,
            Item::Struct(item) => &item.attrs,
            _ => return visit::visit_item(self, item),
        };
        if is_test(attributes) {
            return;
        }
        let opens = usize::from(matches!(item, Item::Mod(module) if module.content.is_some()));
        self.depth += opens;
        visit::visit_item(self, item);
        self.depth -= opens;
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        if !matches!(item, ImplItem::Fn(function) if is_test(&function.attrs)) {
            visit::visit_impl_item(self, item);
        }
    }

    /// Leaves out the names that a module passes on: it does not take them.
    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if !matches!(item.vis, Visibility::Inherited) {
            return;
        }
        for (path, _) in leaves(&item.tree) {
            self.take(&path);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let parts: Name = (path.segments.iter())
            .map(|part| part.ident.to_string())
            .collect();
        if parts.len() > 1 {
            self.take(&parts);
        }
        visit::visit_path(self, path);
    }

    /// `pub(in path)` takes nothing.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}
}
