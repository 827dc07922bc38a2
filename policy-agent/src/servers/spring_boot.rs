//! Spring Boot, as an executable jar or unpacked: one application, whose server is inside. The door is that of
//! the server.

use crate::identity::names::Server;

use super::declaration::{Declaration, Found};

pub(super) static SPRING_BOOT: Declaration = Declaration {
    server: Server::SpringBoot,
    recognises: |lineage| {
        lineage
            .own()
            .starts_with("org.springframework.boot.loader.")
    },
    own_classes_alone: false,
    find: |container, _, _| Found::Service(container.spring_boot_application()),
    is_stopped: None,
    points: &[],
    main_classes: &["org.springframework.boot.loader."],
};
