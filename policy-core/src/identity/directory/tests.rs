use super::super::names::{Server, service};
use super::*;

fn policy(text: &str) -> Arc<Policy> {
    Arc::new(policy_config::parse(text).policy.expect("a valid policy"))
}

fn purse(n: u16) -> PurseId {
    PurseId::new(n)
}

fn named(directory: &mut Directory, n: u32, names: &[&str]) {
    let names = names.iter().map(ToString::to_string).collect();
    directory.enter_loader(LoaderId(n), purse(n as u16));
    directory.set_identity(LoaderId(n), LoaderIdentity::Service(service(names, true)));
}

#[test]
fn what_was_charged_before_naming_follows_the_service() {
    let mut d = Directory::new(Arc::default());
    d.enter_loader(LoaderId(1), purse(1));
    assert_eq!(&*d.account_name(purse(1)), UNACCOUNTED);
    d.set_identity(
        LoaderId(1),
        LoaderIdentity::Service(service(vec!["/shop".into()], true)),
    );
    assert_eq!(&*d.account_name(purse(1)), "/shop");
}

#[test]
fn redeployment_is_one_account_and_retires_the_old_loader() {
    let mut d = Directory::new(Arc::default());
    named(&mut d, 1, &["/shop"]);
    named(&mut d, 2, &["/shop"]);
    let accounts: Vec<_> = d.accounts().filter(|(n, _)| &***n == "/shop").collect();
    assert_eq!(accounts.len(), 1);
    assert_eq!(accounts[0].1.purses.len(), 2);
    assert_eq!(d.retired_loaders(accounts[0].1, |_| true), 1);
    assert_eq!(d.retired_loaders(accounts[0].1, |p| p == purse(2)), 0);
    assert_eq!(d.left_purses(accounts[0].1).count(), 0);
    let representatives: Vec<_> = d.representatives().collect();
    assert!(representatives.contains(&(purse(1), purse(1))));
    assert!(representatives.contains(&(purse(2), purse(1))));
}

/// However many there were at a time.
#[test]
fn services_that_are_forgotten_leave_no_room_behind() {
    let mut d = Directory::new(Arc::default());
    let most = u32::from(u16::MAX);
    for n in 1..most {
        named(&mut d, n, &[&format!("/s{n}")]);
    }
    let full = d.estimated_bytes();
    for n in 1..most {
        d.bury(LoaderId(n));
        d.close_purse(purse(n as u16), 0, 0, Exact::default());
    }
    d.give_back_room();
    assert!(d.estimated_bytes() < full / 20, "{full}");
    named(&mut d, 1, &["/again"]);
    assert_eq!(&*d.account_name(purse(1)), "/again");
}

/// A loader that is gone does not leak, whatever its objects do.
#[test]
fn a_loader_that_is_gone_is_not_retired_and_its_purse_is_left() {
    let mut d = Directory::new(Arc::default());
    named(&mut d, 1, &["/shop"]);
    named(&mut d, 2, &["/shop"]);
    d.bury(LoaderId(1));
    let (_, shop) = d.accounts().find(|(n, _)| &***n == "/shop").unwrap();
    assert_eq!(d.retired_loaders(shop, |_| true), 0);
    assert_eq!(d.left_purses(shop).collect::<Vec<_>>(), [purse(1)]);
}

#[test]
fn a_child_belongs_to_its_parent_even_if_settled_first() {
    let mut d = Directory::new(Arc::default());
    d.enter_loader(LoaderId(1), purse(1));
    d.enter_loader(LoaderId(2), purse(2));
    d.set_identity(LoaderId(2), LoaderIdentity::ChildOf(LoaderId(1)));
    assert_eq!(&*d.account_name(purse(2)), UNACCOUNTED);
    d.set_identity(
        LoaderId(1),
        LoaderIdentity::Service(service(vec!["/shop".into()], true)),
    );
    assert_eq!(&*d.account_name(purse(2)), "/shop");
}

#[test]
fn a_reload_moves_purses_between_names_and_keeps_them() {
    let mut d = Directory::new(policy(
        "[[account]]\nname = \"shop\"\nservice = \"/shop\"\n",
    ));
    named(&mut d, 1, &["/shop", "shop"]);
    assert_eq!(&*d.account_name(purse(1)), "shop");
    d.adopt(policy(
        "[[account]]\nname = \"store\"\nservice = \"shop\"\n",
    ));
    assert_eq!(&*d.account_name(purse(1)), "store");
    d.adopt(Arc::default());
    assert_eq!(&*d.account_name(purse(1)), "/shop");
}

#[test]
fn a_renamed_package_account_keeps_its_purse() {
    let first = policy("[[account]]\nname = \"a\"\npackages = [\"com.a.*\"]\n");
    let mut d = Directory::new(first);
    assert_eq!(d.package_purse(0), None);
    d.enter_packages(purse(5), 0);
    assert_eq!(&*d.account_name(purse(5)), "a");
    d.adopt(policy(
        "[[account]]\nname = \"a\"\npackages = [\"com.a.*\", \"com.c\"]\n",
    ));
    assert_eq!(&*d.account_name(purse(5)), "a");
    d.adopt(policy(
        "[[account]]\nname = \"a\"\npackages = [\"com.a.*\"]\n",
    ));
    d.adopt(policy(
        "[[account]]\nname = \"b\"\npackages = [\"com.a.*\"]\n",
    ));
    assert_eq!(d.package_purse(0), Some(purse(5)));
    assert_eq!(&*d.account_name(purse(5)), "b");
    d.adopt(Arc::default());
    assert_eq!(&*d.account_name(purse(5)), UNACCOUNTED);
}

#[test]
fn a_service_cannot_take_the_name_of_a_package_account() {
    let mut d = Directory::new(policy("[[account]]\nname = \"db\"\npackages = [\"db\"]\n"));
    named(&mut d, 1, &["db"]);
    assert_eq!(&*d.account_name(purse(1)), "db (service)");
}

#[test]
fn counters_survive_the_purse_and_are_bounded() {
    let mut d = Directory::new(Arc::default());
    for n in 1..3000u32 {
        named(&mut d, n, &[&format!("/s{n}")]);
        d.close_purse(purse(n as u16), 10, 1, Exact::default());
    }
    assert_eq!(d.accounts().count(), 1);
    assert_eq!(d.departed("/s2999").allocated_bytes, 10);
    assert_eq!(d.departed("/s1").allocated_bytes, 0);
    assert!(d.departed.len() <= 2 * MAX_DEPARTED);
    assert!(d.loader(LoaderId(2999)).is_none());
    assert!(d.deployments.is_empty());
}

#[test]
fn a_loader_waits_for_its_children() {
    let mut d = Directory::new(Arc::default());
    named(&mut d, 1, &["/shop"]);
    d.enter_loader(LoaderId(2), purse(2));
    d.set_identity(LoaderId(2), LoaderIdentity::ChildOf(LoaderId(1)));
    assert!(!d.is_childless(LoaderId(1)));
    assert!(d.is_childless(LoaderId(2)));
    assert_eq!(
        d.close_purse(purse(2), 0, 0, Exact::default()).as_deref(),
        Some("/shop")
    );
    assert!(d.is_childless(LoaderId(1)));
}

#[test]
fn a_package_account_that_comes_back_has_its_purse_until_it_is_closed() {
    let with = policy("[[account]]\nname = \"a\"\npackages = [\"com.a\"]\n");
    let mut d = Directory::new(with.clone());
    d.enter_packages(purse(5), 0);
    assert_eq!(d.disowned_purses(), []);
    d.adopt(Arc::default());
    assert_eq!(d.disowned_purses(), [purse(5)]);
    d.adopt(with.clone());
    assert_eq!(
        (d.disowned_purses(), d.package_purse(0)),
        (vec![], Some(purse(5)))
    );
    d.adopt(Arc::default());
    assert_eq!(
        d.close_purse(purse(5), 10, 1, Exact::default()).as_deref(),
        Some(UNACCOUNTED)
    );
    assert_eq!(d.departed(UNACCOUNTED).allocated_bytes, 10);
    d.adopt(with);
    assert_eq!(d.package_purse(0), None);
}

const TENANTS: &str = "[[account]]\nname = \"shop\"\nservice = \"/shop\"\nlimit = \"9MiB\"\n\
    [[account]]\nscope = \"tenant-*\"\nlimit = \"1MiB\"\n";

fn account<'d>(directory: &'d Directory, name: &str) -> &'d Account {
    let mut accounts = directory.accounts();
    accounts.find(|(n, _)| &***n == name).expect("listed").1
}

#[test]
fn a_scope_inside_a_service_is_an_account_beneath_it() {
    let mut d = Directory::new(policy(TENANTS));
    named(&mut d, 1, &["/shop"]);
    named(&mut d, 2, &["/shop"]);
    d.enter_scope(purse(5), "tenant-42".into(), LoaderId(1));
    d.enter_scope(purse(6), "tenant-42".into(), LoaderId(2));
    d.enter_scope(purse(7), "tenant-42".into(), LoaderId::BOOT);
    let scope = account(&d, "shop/tenant-42");
    assert_eq!((scope.kind, scope.rule), (Kind::Scope, Some(1)));
    assert_eq!(scope.service, "/shop");
    assert_eq!(scope.purses, BTreeSet::from([purse(5), purse(6)]));
    assert_eq!(d.parent(scope).as_deref(), Some("shop"));
    let shop = account(&d, "shop");
    assert_eq!(shop.purses, BTreeSet::from([purse(1), purse(2)]));
    assert_eq!(
        shop.tree().map(PurseId::get).collect::<Vec<_>>(),
        [1, 2, 5, 6]
    );
    assert_eq!(d.parent(account(&d, "tenant-42")), None);
    let aboves: BTreeSet<_> = d.aboves().collect();
    assert_eq!(
        aboves,
        BTreeSet::from([(purse(5), purse(1)), (purse(6), purse(1))])
    );
}

#[test]
fn a_scope_follows_its_loader_when_that_is_named_late_or_anew() {
    let mut d = Directory::new(Arc::default());
    d.enter_loader(LoaderId(1), purse(1));
    d.enter_loader(LoaderId(2), purse(2));
    d.enter_scope(purse(5), "t".into(), LoaderId(2));
    assert_eq!(&*d.account_name(purse(5)), "t");
    d.set_identity(LoaderId(2), LoaderIdentity::ChildOf(LoaderId(1)));
    let name = service(vec!["/shop".into()], true);
    d.set_identity(LoaderId(1), LoaderIdentity::Service(name));
    assert_eq!(&*d.account_name(purse(5)), "/shop/t");
    d.adopt(policy(TENANTS));
    assert_eq!(&*d.account_name(purse(5)), "shop/t");
    assert!(d.accounts().all(|(name, _)| !name.starts_with('/')));
    d.adopt(policy("[[account]]\nname = \"all\"\nscope = \"*\"\n"));
    assert_eq!(&*d.account_name(purse(5)), "all");
    assert_eq!(d.parent_of("all").as_deref(), Some("/shop"));
    d.enter_scope(purse(6), "u".into(), LoaderId::BOOT);
    assert_eq!(
        d.parent_of("all"),
        None,
        "of several services, or none, it has no one parent"
    );
    assert_eq!(account(&d, "/shop").beneath, BTreeSet::from([purse(5)]));
}

#[test]
fn a_scope_never_joins_an_account_of_another_kind() {
    let mut d = Directory::new(policy(
        "[[account]]\nname = \"shop\"\nservice = \"/shop\"\n\
         [[account]]\nname = \"shop/t\"\npackages = [\"a\"]\n",
    ));
    named(&mut d, 1, &["/shop"]);
    d.enter_scope(purse(5), "t".into(), LoaderId(1));
    d.enter_scope(purse(6), "shop".into(), LoaderId::BOOT);
    assert_eq!(&*d.account_name(purse(5)), "shop/t (scope)");
    assert_eq!(&*d.account_name(purse(6)), "shop (scope)");
}

#[test]
fn a_loader_is_kept_for_its_scopes_and_they_leave_nothing_behind() {
    let mut d = Directory::new(Arc::default());
    named(&mut d, 1, &["/shop"]);
    d.enter_scope(purse(5), "t".into(), LoaderId(1));
    assert!(!d.is_childless(LoaderId(1)));
    assert_eq!(d.scope_purses(), [purse(5)]);
    assert_eq!(
        d.close_purse(purse(5), 3, 1, Exact::default()).as_deref(),
        Some("/shop/t")
    );
    assert!(d.is_childless(LoaderId(1)));
    assert!(account(&d, "/shop").beneath.is_empty());
    assert!(d.accounts().all(|(name, _)| &**name != "/shop/t"));
    assert_eq!(d.departed("/shop/t").allocated_bytes, 3);
    assert_eq!(d.aboves().count(), 0);
    // The other way round: the service's purse ends first, and the scope still holds.
    d.enter_scope(purse(6), "t".into(), LoaderId(1));
    d.close_purse(purse(1), 0, 0, Exact::default());
    assert!(d.close_purse(purse(6), 0, 0, Exact::default()).is_some());
    assert_eq!(d.accounts().count(), 1, "only the reserved account is left");
}

#[test]
fn an_account_has_a_door_if_one_of_its_services_is_in_a_server_with_one() {
    let mut d = Directory::new(policy("[[account]]\nname = \"all\"\nservice = \"/s*\"\n"));
    let in_server = |name: &str, server| {
        LoaderIdentity::Service(ServiceName {
            server,
            ..service(vec![name.to_owned()], true)
        })
    };
    for (n, name, server) in [
        (1, "/shop", Server::Tomcat),
        (2, "/store", Server::Other),
        (3, "/bank", Server::Other),
    ] {
        d.enter_loader(LoaderId(n), purse(n as u16));
        d.set_identity(LoaderId(n), in_server(name, server));
    }
    d.enter_loader(LoaderId(4), purse(4));
    d.set_identity(LoaderId(4), LoaderIdentity::ChildOf(LoaderId(1)));
    d.enter_scope(purse(5), "tenant".into(), LoaderId(1));
    let with_door = |d: &Directory| -> Vec<String> {
        let accounts = d.accounts().filter(|(_, account)| d.has_door(account));
        accounts.map(|(name, _)| name.to_string()).collect()
    };
    assert!(with_door(&d).is_empty());

    let mut tomcat = Doors::default();
    tomcat.set(Server::Tomcat, true);
    let before = d.version();
    d.set_doors(tomcat);
    assert!(d.version() > before);
    assert_eq!(with_door(&d), ["all"]);
    let fitted = d.version();
    d.set_doors(tomcat);
    assert_eq!(d.version(), fitted);

    // Without a rule each service has its own account, and the child that of its parent.
    d.adopt(Arc::default());
    assert_eq!(with_door(&d), ["/shop"]);
    d.set_identity(LoaderId(3), in_server("/bank", Server::SpringBoot));
    assert_eq!(with_door(&d), ["/bank", "/shop"]);
}

/// A console on Netty is no reason to throw errors in what has not come through the methods.
#[test]
fn the_methods_of_a_policy_stand_alone_beside_the_libraries_of_a_program_or_application() {
    let rule = "[[account]]\nservice = \"*\"\nlimit = \"1MiB\"\ndoor = [\"a.C#m\"]\n";
    for (server, deployed) in [
        (Server::Program, None),
        (Server::SpringBoot, Some(Server::Tomcat)),
    ] {
        let mut d = Directory::new(policy(rule));
        d.enter_loader(LoaderId(1), purse(1));
        let name = ServiceName {
            server,
            ..service(vec!["shop".to_owned()], true)
        };
        d.set_identity(LoaderId(1), LoaderIdentity::Service(name));
        d.set_method_doors(vec![
            policy_config::DoorMethod::new("a.C#m").expect("a method"),
        ]);
        let alone = |d: &Directory| {
            let mut accounts = d.accounts();
            let (_, account) = accounts
                .find(|(name, _)| &***name == "shop")
                .expect("it is");
            d.has_method_doors_alone(account)
        };
        let mut doors = Doors::default();
        doors.set(Server::Netty, true);
        d.set_doors(doors);
        assert!(alone(&d));
        if let Some(deployed) = deployed {
            doors.set(deployed, true);
            d.set_doors(doors);
            assert!(!alone(&d));
        }
    }
}

#[test]
fn an_account_has_a_door_if_a_method_that_its_rule_names_has_one() {
    let rule = |name: &str, method: &str| {
        format!(
            "[[account]]\nname = \"{name}\"\npackages = [\"{name}.*\"]\nlimit = \"1MiB\"\ndoor = [\"{method}\"]\n"
        )
    };
    let mut d = Directory::new(policy(&(rule("a", "a.C#m") + &rule("b", "b.C#m"))));
    d.enter_packages(purse(1), 0);
    d.enter_packages(purse(2), 1);
    let with_door = |d: &Directory| -> Vec<String> {
        let accounts = d.accounts().filter(|(_, account)| d.has_door(account));
        accounts.map(|(name, _)| name.to_string()).collect()
    };
    assert!(with_door(&d).is_empty());
    let fitted = vec![policy_config::DoorMethod::new("b.C#m").expect("a method")];
    let before = d.version();
    d.set_method_doors(fitted.clone());
    assert!(d.version() > before);
    assert_eq!(with_door(&d), ["b"]);
    let alone: Vec<bool> = d
        .accounts()
        .map(|(_, account)| d.has_method_doors_alone(account))
        .collect();
    assert_eq!(
        alone.iter().filter(|&&alone| alone).count(),
        1,
        "no server has one for b"
    );
    let version = d.version();
    d.set_method_doors(fitted);
    assert_eq!(d.version(), version);
    d.adopt(Arc::default());
    assert!(with_door(&d).is_empty());
}
