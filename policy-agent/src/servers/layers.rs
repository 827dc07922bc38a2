//! Module layers that a program defines for its plugins: loaders are `jdk.internal.loader.Loader`s, one for a layer,
//! or one for each module of it.

use std::collections::{BTreeMap, BTreeSet};

use policy_jvm::Local;

use crate::identity::names::{Server, ServiceName, service};

use super::container::{Container, Lineage};
use super::declaration::{Declaration, Found};

/// Modules of a layer, and modules in all that they require, that are looked at. A layer with more is nobody's: its
/// callers pay.
const MAX_MODULES: usize = 256;
const MAX_REQUIRED: usize = 4_096;

/// The class is the JDK's, and nobody else can define one of this name.
pub(super) static MODULE_LAYERS: Declaration = Declaration {
    server: Server::ModuleLayers,
    recognises: |lineage| lineage.own() == "jdk.internal.loader.Loader",
    own_classes_alone: true,
    find,
    // A layer ends when it is collected.
    is_stopped: None,
    points: &[],
    main_classes: &[],
};

/// A module of a layer.
#[derive(Debug, Default)]
struct Module {
    /// It has no descriptor of its own, and requires nothing by it.
    is_automatic: bool,
    requires: Vec<String>,
}

/// The modules of a layer by their names.
type Modules = BTreeMap<String, Module>;

/// The root module of the layer. A layer whose parent loader is an application's is the application's. An application
/// may give its layer another parent, and so a name of its own choice, as it may name any loader that it makes.
fn find<'j>(container: &Container<'_, 'j>, _: &Lineage, loader: &Local<'j>) -> Found<'j> {
    if let Some(parent) = container.parent(loader) {
        match container.is_services(&parent) {
            Some(false) => {}
            Some(true) => return Found::ChildOf(parent),
            None => return Found::NotYet,
        }
    }
    let mut modules = Modules::new();
    let mut own = None;
    match loader.get_named("pool", "Ljdk/internal/loader/LoaderPool;") {
        None => read_modules(container, loader, &mut modules),
        Some(pool) => {
            let mut mine = Modules::new();
            read_modules(container, loader, &mut mine);
            own = mine.into_keys().next();
            if let Some(loaders) = pool.get_named("loaders", "Ljava/util/Map;") {
                container.each_entry(&loaders, MAX_MODULES, |_, loader| {
                    read_modules(container, loader, &mut modules);
                });
            }
        }
    }
    let required: usize = modules.values().map(|module| module.requires.len()).sum();
    if modules.len() >= MAX_MODULES || required >= MAX_REQUIRED {
        return Found::Nobody;
    }
    match names(&modules, own.as_deref()) {
        Some(mut names) => {
            if own.is_some() {
                // The JDK's name of its loader.
                names.extend(names.first().map(|root| format!("Loader-{root}")));
            }
            Found::Service(ServiceName {
                server: Server::ModuleLayers,
                // Several loaders may be of one layer, and several layers of one module may live.
                ..service(names, false)
            })
        }
        None => Found::Nobody,
    }
}

/// Adds the modules that a loader defines.
fn read_modules<'j>(container: &Container<'_, 'j>, loader: &Local<'j>, modules: &mut Modules) {
    let Some(references) = loader.get_named("nameToModule", "Ljava/util/Map;") else {
        return;
    };
    container.each_entry(&references, MAX_MODULES, |name, reference| {
        let Some(name) = name.text().filter(|_| modules.len() < MAX_MODULES) else {
            return;
        };
        let required: usize = modules.values().map(|module| module.requires.len()).sum();
        let room = MAX_REQUIRED.saturating_sub(required);
        modules.insert(
            name,
            read_module(container, reference, room).unwrap_or_default(),
        );
    });
}

/// Reads a module, with at most so many that it requires.
fn read_module<'j>(
    container: &Container<'_, 'j>,
    reference: &Local<'j>,
    room: usize,
) -> Option<Module> {
    let descriptor = reference.get_named("descriptor", "Ljava/lang/module/ModuleDescriptor;")?;
    let mut module = Module {
        is_automatic: descriptor.boolean_named("automatic") == Some(true),
        requires: Vec::new(),
    };
    let requires = descriptor.get_named("requires", "Ljava/util/Set;")?;
    container.each(&requires, room, |required| {
        (module.requires).extend(container.text_in(required, "name"));
    });
    Some(module)
}

/// The names of the service that a loader of a layer belongs to, by the layer's modules: those that none of the others
/// requires are its roots. `own` is the loader's module, where each module has a loader. `None` for a module that
/// several plugins share, which its callers pay for.
fn names(modules: &Modules, own: Option<&str>) -> Option<Vec<String>> {
    let roots = roots(modules);
    match (roots.as_slice(), own) {
        ([], _) => None,
        ([root], _) => Some(vec![(*root).to_owned()]),
        (several, Some(own)) => several.contains(&own).then(|| vec![own.to_owned()]),
        (several, None) => {
            let shortest = several.iter().min_by_key(|root| root.len())?;
            let mut names: Vec<String> = several.iter().map(|root| (*root).to_owned()).collect();
            // A plugin, and the parts of it that are found as providers of a service: `search`, `search.phonetic`.
            let first = match several.iter().all(|root| root.starts_with(shortest)) {
                true => (*shortest).to_owned(),
                false => several.join("+"),
            };
            names.insert(0, first);
            Some(names)
        }
    }
}

/// The modules that no other one requires, in order. Automatic ones require nothing by name, so they are roots only
/// where no other module is.
fn roots(modules: &Modules) -> Vec<&str> {
    let required: BTreeSet<&str> = (modules.iter())
        .flat_map(|(name, module)| module.requires.iter().filter(move |it| *it != name))
        .map(String::as_str)
        .collect();
    let is_required = |name: &str| required.contains(name);
    let free = |automatic: bool| {
        let known = modules.iter();
        let of_sort = known.filter(|(_, module)| module.is_automatic == automatic);
        let names = of_sort.map(|(name, _)| name.as_str());
        names.filter(|name| !is_required(name)).collect::<Vec<_>>()
    };
    let explicit = free(false);
    match explicit.is_empty() {
        true => free(true),
        false => explicit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Modules with those that they require; an automatic one has `auto` before its name.
    fn layer(modules: &[(&str, &[&str])]) -> Modules {
        let modules = modules.iter().map(|(name, requires)| {
            let module = Module {
                is_automatic: name.starts_with("auto "),
                requires: requires.iter().map(|name| (*name).to_owned()).collect(),
            };
            (name.trim_start_matches("auto ").to_owned(), module)
        });
        modules.collect()
    }

    fn named(modules: &[(&str, &[&str])], own: Option<&str>) -> Option<Vec<String>> {
        names(&layer(modules), own)
    }

    #[test]
    fn a_layer_is_called_as_the_module_that_no_other_requires() {
        let red = [
            ("plug.red", &["java.base", "plug.base"][..]),
            ("plug.base", &["java.base"]),
        ];
        for own in [None, Some("plug.red"), Some("plug.base")] {
            assert_eq!(named(&red, own).unwrap(), ["plug.red"]);
        }
        assert_eq!(named(&[], None), None);
    }

    #[test]
    fn of_several_roots_each_loader_has_its_own_and_one_loader_has_all() {
        let two = [
            ("red", &["base"][..]),
            ("blue", &["base"]),
            ("base", &["java.base"]),
        ];
        assert_eq!(named(&two, Some("red")).unwrap(), ["red"]);
        assert_eq!(named(&two, Some("base")), None, "its callers pay");
        assert_eq!(named(&two, None).unwrap(), ["blue+red", "blue", "red"]);
        let parts = [("search.phonetic", &[][..]), ("search", &[])];
        assert_eq!(
            named(&parts, None).unwrap(),
            ["search", "search", "search.phonetic"]
        );
    }

    #[test]
    fn automatic_modules_are_roots_only_among_themselves() {
        let with_libraries = [
            ("plugin", &["auto.lib"][..]),
            ("auto auto.lib", &[]),
            ("auto unseen.lib", &[]),
        ];
        assert_eq!(named(&with_libraries, None).unwrap(), ["plugin"]);
        assert_eq!(
            named(&[("auto a", &[]), ("auto b", &[])], None).unwrap(),
            ["a+b", "a", "b"]
        );
    }

    #[test]
    fn modules_that_require_each_other_have_no_root() {
        assert_eq!(named(&[("a", &["b"]), ("b", &["a"])], None), None);
    }
}
