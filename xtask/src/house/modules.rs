//! The modules of a crate and their files, as its `mod` items tell. Without those of tests.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use syn::{Attribute, File, Item};

/// The path of a module from the crate's root: `["enforce", "gate"]`.
pub(super) type Name = Vec<String>;

/// A module with a file of its own.
pub(super) struct Module {
    pub(super) path: PathBuf,
    pub(super) file: File,
}

/// All modules of the crate whose root is `root`, by their names.
pub(super) fn of(root: &Path) -> BTreeMap<Name, Module> {
    let mut found = BTreeMap::new();
    let folder = root.parent().expect("a file lies in a folder");
    add(&mut found, Vec::new(), root, folder);
    found
}

/// `folder`: where the files of the modules beneath it are.
fn add(found: &mut BTreeMap<Name, Module>, name: Name, path: &Path, folder: &Path) {
    let text =
        std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let file = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    for item in &file.items {
        let Item::Mod(module) = item else { continue };
        if module.content.is_some() || is_test(&module.attrs) {
            continue;
        }
        let own = module.ident.to_string();
        let flat = folder.join(format!("{own}.rs"));
        let nested = folder.join(&own).join("mod.rs");
        let (path, beneath) = match given_path(&module.attrs) {
            Some(given) => {
                let path = path.with_file_name(given);
                let beneath = path.parent().expect("a file lies in a folder").to_owned();
                (path, beneath)
            }
            None if flat.exists() => (flat, folder.join(&own)),
            None => (nested, folder.join(&own)),
        };
        let mut inner = name.clone();
        inner.push(own);
        add(found, inner, &path, &beneath);
    }
    let path = (path.canonicalize()).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    found.insert(name, Module { path, file });
}

/// Of `#[path = "…"]`.
fn given_path(attributes: &[Attribute]) -> Option<String> {
    let given = (attributes.iter()).find(|attribute| attribute.path().is_ident("path"))?;
    match &given.meta.require_name_value().ok()?.value {
        syn::Expr::Lit(syn::ExprLit {
            lit: syn::Lit::Str(text),
            ..
        }) => Some(text.value()),
        _ => None,
    }
}

/// Whether what has these attributes is compiled for tests alone.
pub(super) fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg") && {
                let condition = attribute.meta.require_list().expect("cfg has a condition");
                let text = condition.tokens.to_string();
                (text.split(|c: char| !c.is_alphanumeric())).any(|word| word == "test")
                    && !text.contains("not")
            }
    })
}
