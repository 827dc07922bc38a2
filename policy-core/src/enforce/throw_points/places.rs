//! Places in the code, as the rows of the reviewed tables name them, and the search for the most
//! specific one.
//!
//! For a class and a method the first of these decides: the method; the method in any class of a
//! package or below; its class, or an enclosing one; the package; a parent package with `.*`. A place
//! that begins with `*.` is a *shape*: it matches also where a copy of the code has another prefix, as
//! shading makes them. Places without it come first.

use std::collections::HashMap;

/// A place in the code.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Place {
    /// `a.b.*`
    Below(String),
    /// `a.b`
    Package(String),
    /// `a.b.C`, `a.b.C$D`: with the classes inside it.
    Class(String),
    /// `a.b.C#m`
    Method(String, String),
    /// `a.b.*#m`: in every class of that package and below.
    MethodBelow(String, String),
}

impl Place {
    fn read(text: &str) -> Result<Place, &'static str> {
        if let Some((class, method)) = text.split_once('#') {
            return match Place::read(class)? {
                _ if method.is_empty() => Err("a method needs its name"),
                Place::Class(class) => Ok(Place::Method(class, method.to_owned())),
                Place::Below(package) => Ok(Place::MethodBelow(package, method.to_owned())),
                _ => Err("a method needs its class"),
            };
        }
        let (name, below) = match text.strip_suffix(".*") {
            Some(name) => (name, true),
            None => (text, false),
        };
        let part_is_class = |part: &str| part.starts_with(char::is_uppercase);
        let parts: Vec<&str> = name.split('.').collect();
        let classes = parts.iter().filter(|part| part_is_class(part)).count();
        let last_is_class = parts.last().is_some_and(|part| part_is_class(part));
        if parts
            .iter()
            .any(|part| part.is_empty() || part.contains('*'))
        {
            return Err("not a package, a class or a method");
        }
        match (below, classes, last_is_class) {
            (true, 0, _) => Ok(Place::Below(name.to_owned())),
            (false, 0, _) => Ok(Place::Package(name.to_owned())),
            (false, 1, true) => Ok(Place::Class(name.to_owned())),
            _ => Err("classes inside classes are written with a `$`"),
        }
    }
}

/// The rows of a table by their place, compiled for look-up.
#[derive(Debug)]
pub(super) struct Places<T> {
    named: HashMap<Place, T>,
    shapes: HashMap<Place, T>,
}

impl<T> Default for Places<T> {
    fn default() -> Places<T> {
        Places {
            named: HashMap::new(),
            shapes: HashMap::new(),
        }
    }
}

impl<T> Places<T> {
    /// Enters what is said of a place.
    ///
    /// # Errors
    /// Why the text names no place, or that it was entered before.
    pub(super) fn enter(&mut self, at: &str, said: T) -> Result<(), &'static str> {
        let (rows, text) = self.rows_of(at);
        match rows.insert(Place::read(text)?, said) {
            None => Ok(()),
            Some(_) => Err("given twice"),
        }
    }

    fn rows_of<'t>(&mut self, at: &'t str) -> (&mut HashMap<Place, T>, &'t str) {
        match at.strip_prefix("*.") {
            Some(shape) => (&mut self.shapes, shape),
            None => (&mut self.named, at),
        }
    }

    /// Returns the row for a method of a class, whose name is written as in Java (`java.util.Map$Entry`), and whether
    /// the row names the method itself.
    pub(super) fn find(&self, class: &str, method: &str) -> Option<(&T, bool)> {
        find_in(&self.named, class, method).or_else(|| {
            without_prefixes(class).find_map(|class| find_in(&self.shapes, class, method))
        })
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.named.len() + self.shapes.len()
    }

    #[cfg(test)]
    pub(super) fn remove(&mut self, at: &str) {
        let (rows, text) = self.rows_of(at);
        let place = Place::read(text).expect("a place");
        rows.remove(&place).expect("it was entered");
    }
}

fn find_in<'r, T>(rows: &'r HashMap<Place, T>, class: &str, method: &str) -> Option<(&'r T, bool)> {
    let named = Place::Method(class.to_owned(), method.to_owned());
    let (package, _) = class.rsplit_once('.').unwrap_or(("", class));
    let below =
        parents(package).map(|package| Place::MethodBelow(package.to_owned(), method.to_owned()));
    if let Some(said) = [named]
        .into_iter()
        .chain(below)
        .find_map(|place| rows.get(&place))
    {
        return Some((said, true));
    }
    enclosing(class)
        .map(|class| Place::Class(class.to_owned()))
        .chain([Place::Package(package.to_owned())])
        .chain(parents(package).map(|package| Place::Below(package.to_owned())))
        .find_map(|place| rows.get(&place))
        .map(|said| (said, false))
}

/// A class and its enclosing classes, the innermost first.
fn enclosing(class: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(class), |inner| {
        inner.rsplit_once('$').map(|(outer, _)| outer)
    })
}

/// A package and its parents, the innermost first.
fn parents(package: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(package), |below| {
        below.rsplit_once('.').map(|(above, _)| above)
    })
}

/// A class by its name, and by what is left of the name without its first packages.
fn without_prefixes(class: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(class), |name| {
        name.split_once('.').map(|(_, rest)| rest)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(rows: &[&str]) -> Places<usize> {
        let mut places = Places::default();
        for (number, at) in rows.iter().enumerate() {
            places.enter(at, number).expect("a place");
        }
        places
    }

    #[test]
    fn the_most_specific_place_decides() {
        let places = places(&[
            "a.*",
            "a.b",
            "a.c.C$D",
            "a.c.C#m",
            "a.c.*#m",
            "*.s.t.*",
            "*.s.t.X#m",
            "z.s.t.u.*",
        ]);
        for (class, method, expected) in [
            ("a.X", "m", Some((0, false))),
            ("a.b.X", "n", Some((1, false))),
            ("a.b.c.X", "n", Some((0, false))),
            ("a.c.C$D$E", "n", Some((2, false))),
            ("a.c.C", "m", Some((3, true))),
            ("a.c.d.X", "m", Some((4, true))),
            ("s.t.u.Y", "m", Some((5, false))),
            ("shaded.by.s.t.Y", "m", Some((5, false))),
            ("shaded.by.s.t.X", "m", Some((6, true))),
            ("z.s.t.u.Y", "m", Some((7, false))),
            ("s.x.t.Y", "m", None),
            ("ss.t.Y", "m", None),
            ("b.X", "m", None),
            ("X", "m", None),
        ] {
            let found = places.find(class, method);
            let found = found.map(|(said, by_name)| (*said, by_name));
            assert_eq!(found, expected, "{class}#{method}");
        }
    }

    #[test]
    fn what_is_no_place_is_refused() {
        let mut places = places(&["a.b"]);
        for (at, why) in [
            ("a.b", "twice"),
            ("a.C.D", "inside"),
            ("a.b#m", "needs its class"),
            ("a.C#", "needs its name"),
            ("*", "not a package"),
            ("*.*", "not a package"),
            ("a.*.b", "not a package"),
            ("", "not a package"),
        ] {
            let error = places.enter(at, 0).unwrap_err();
            assert!(error.contains(why), "{at}: {error}");
        }
    }
}
