//! Kafka Connect: a loader for each location of `plugin.path`, which is a folder with jars or one jar. Connectors and
//! tasks of one location share it.

use policy_jvm::Local;

use crate::identity::names::{Server, ServiceName, service};
use crate::identity::versions::without_version;

use super::container::{Container, Lineage};
use super::declaration::{Declaration, Found};

pub(super) static KAFKA_CONNECT: Declaration = Declaration {
    server: Server::KafkaConnect,
    recognises: |lineage| {
        lineage.is("org.apache.kafka.connect.runtime.isolation.PluginClassLoader")
    },
    own_classes_alone: true,
    find,
    // A worker never closes one.
    is_stopped: None,
    points: &[],
    main_classes: &[],
};

/// The location's last folder or file, without its version so that limits outlive an upgrade, and as it is.
fn find<'j>(container: &Container<'_, 'j>, _: &Lineage, loader: &Local<'j>) -> Found<'j> {
    let location = loader.get_named("pluginLocation", "Ljava/net/URL;");
    let names = location
        .and_then(|location| container.text_in(&location, "path"))
        .and_then(|path| names(&path));
    match names {
        // Two folders of `plugin.path` may have a location of one name: two loaders of one service.
        Some(names) => Found::Service(ServiceName {
            server: Server::KafkaConnect,
            ..service(names, false)
        }),
        None => Found::NotYet,
    }
}

/// The names of the plugin at this path of a URL; `None` if it has no last element.
fn names(path: &str) -> Option<Vec<String>> {
    let element = decoded(path.rsplit('/').find(|element| !element.is_empty())?);
    let stem = element.strip_suffix(".jar").unwrap_or(&element);
    Some(vec![
        without_version(stem).to_owned(),
        stem.to_owned(),
        element.clone(),
    ])
}

/// The text of a part of a URL. Sequences that are none stay as they are.
fn decoded(part: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = part;
    while let Some((before, after)) = rest.split_once('%') {
        bytes.extend_from_slice(before.as_bytes());
        let code = (after.get(..2))
            .filter(|code| code.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .and_then(|code| u8::from_str_radix(code, 16).ok());
        rest = match code {
            Some(byte) => {
                bytes.push(byte);
                &after[2..]
            }
            None => {
                bytes.push(b'%');
                after
            }
        };
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_is_called_as_its_folder_or_jar_without_the_version() {
        let named = |path| names(path).unwrap();
        let folder = named("/opt/plugins/acme-red-1.2.0/");
        assert_eq!(folder, ["acme-red", "acme-red-1.2.0", "acme-red-1.2.0"]);
        let jar = named("/opt/plugins/blue-2.0.jar");
        assert_eq!(jar, ["blue", "blue-2.0", "blue-2.0.jar"]);
        assert_eq!(named("/opt/plugins/s3")[0], "s3");
        assert_eq!(names("/"), None);
    }

    #[test]
    fn escapes_of_urls_are_decoded() {
        assert_eq!(decoded("my%20plugin"), "my plugin");
        assert_eq!(decoded("caf%C3%A9"), "café");
        assert_eq!(decoded("50%"), "50%");
        assert_eq!(decoded("%+1%zz%é"), "%+1%zz%é");
    }
}
