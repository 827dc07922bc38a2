use super::*;
use crate::{About, Builder, Frame};
use proptest::collection::vec;
use proptest::prelude::*;

const ADD: Frame<'static> = Frame {
    function: "com.acme.Cart.add",
    file: "Cart.java",
    line: 41,
};
const RUN: Frame<'static> = Frame {
    function: "java.lang.Thread.run",
    file: "Thread.java",
    line: 9,
};

fn builder() -> Builder {
    Builder::new(&About {
        at: SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000),
        program: "com.acme.Main",
        interval_bytes: 65_536,
        comments: &["a remark"],
    })
}

fn of(alloc_bytes: u64, live_bytes: u64) -> Values {
    Values {
        alloc_objects: alloc_bytes / 8,
        alloc_bytes,
        live_objects: live_bytes / 8,
        live_bytes,
    }
}

fn example() -> Profile {
    let mut builder = builder();
    builder.add("shop", "byte[]", [ADD, RUN], of(800, 80));
    builder.add("shop", "byte[]", [], of(8, 8));
    builder.add("shop", "com.acme.Item", [ADD, RUN], of(160, 0));
    builder.add("a;b\n", "x\u{2028};y", [], of(16, 16));
    builder.add("none", "byte[]", [RUN], Values::default());
    builder.finish()
}

fn collapsed(profile: &Profile, of: SampleType) -> String {
    let mut out = Vec::new();
    profile.write_collapsed(of, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn what_was_written_is_read() {
    let profile = example();
    let read = Profile::from_gzip(&profile.to_gzip()).unwrap();
    assert_eq!(read, profile);
    assert_eq!(read.program(), "com.acme.Main");
    assert_eq!(
        read.at(),
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000)
    );
    let sums = read.accounts();
    assert_eq!(sums["shop"], of(968, 88));
    assert_eq!(sums["a;b\n"], of(16, 16));
    assert_eq!(sums.len(), 2, "what is zero is left out");
    // Places and methods are stored once: two methods, two accounts, two classes without a stack.
    assert_eq!((read.0.location.len(), read.0.function.len()), (6, 6));
}

#[test]
fn collapsed_stacks_are_whole_lines_whatever_the_names_are() {
    let profile = example();
    assert_eq!(
        collapsed(&profile, SampleType::AllocSpace),
        "[a:b ];x :y 16\n\
         [shop];byte[] 8\n\
         [shop];java.lang.Thread.run:9;com.acme.Cart.add:41;byte[] 800\n\
         [shop];java.lang.Thread.run:9;com.acme.Cart.add:41;com.acme.Item 160\n"
    );
    assert!(!collapsed(&profile, SampleType::InuseSpace).contains("Item"));
    assert_eq!(collapsed(&builder().finish(), SampleType::InuseSpace), "");
}

#[test]
fn one_account_is_taken_out_with_nothing_of_the_others() {
    let profile = example();
    let one = profile.of_account("a;b\n");
    let one = Profile::from_gzip(&one.to_gzip()).unwrap();
    assert_eq!(
        one.accounts().into_iter().collect::<Vec<_>>(),
        [("a;b\n", of(16, 16))]
    );
    let leaked = one.0.string_table.iter().any(|text| text.contains("shop"));
    assert!(!leaked, "{:?}", one.0.string_table);
    assert_eq!(collapsed(&one, SampleType::InuseSpace), "[a:b ];x :y 16\n");
    let mut shop = profile.of_account("shop");
    assert_eq!(shop.accounts()["shop"], of(968, 88));
    shop.show_first(SampleType::AllocObjects);
    assert_eq!(shop.text(shop.0.default_sample_type), Some("alloc_objects"));
    assert!(profile.of_account("nobody").is_empty());
}

#[test]
fn what_is_no_profile_is_refused_with_a_reason() {
    let error = |bytes: &[u8]| Profile::from_gzip(bytes).unwrap_err().to_string();
    assert!(error(b"{}").contains("not gzip"), "{}", error(b"{}"));
    assert!(error(b"").contains("not gzip"));
    let gzip = |plain: &[u8]| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(plain).unwrap();
        encoder.finish().unwrap()
    };
    assert_eq!(
        error(&gzip(b"{\"accounts\":[]}")),
        "it is not in the pprof format"
    );
    let foreign = "it is not a profile of Heapwarden's accounts";
    assert_eq!(error(&gzip(b"")), foreign);
    let bomb = gzip(&vec![0; MAX_BYTES as usize + 1]);
    assert_eq!(error(&bomb), "it is larger than 64 MiB");
    let mut whole = example().to_gzip();
    whole.truncate(whole.len() - 9);
    assert!(error(&whole).contains("damaged"));

    let broken = |with: fn(&mut proto::Profile)| {
        let mut profile = example();
        with(&mut profile.0);
        error(&profile.to_gzip())
    };
    let not = "it is not in the pprof format";
    assert_eq!(broken(|p| p.sample[0].location_id.push(99)), not);
    assert_eq!(broken(|p| p.location[0].line[0].function_id = 99), not);
    assert_eq!(broken(|p| p.function[0].name = -1), not);
    assert_eq!(broken(|p| p.sample[0].label[0].str = i64::MAX), not);
    assert_eq!(broken(|p| p.sample_type.truncate(3)), foreign);
    assert_eq!(broken(|p| p.sample[0].label.truncate(1)), foreign);
    assert_eq!(broken(|p| p.sample[0].value.truncate(3)), foreign);
}

#[test]
fn values_beyond_the_format_are_its_largest() {
    let mut builder = builder();
    builder.add("shop", "byte[]", [], of(u64::MAX, u64::MAX));
    let sum = builder.finish().accounts()["shop"];
    assert_eq!(sum.live_bytes, i64::MAX as u64);
}

proptest! {
    #[test]
    fn any_message_is_refused_or_usable(bytes in vec(any::<u8>(), 0..300)) {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&bytes).unwrap();
        if let Ok(profile) = Profile::from_gzip(&encoder.finish().unwrap()) {
            collapsed(&profile, SampleType::InuseSpace);
            let _ = profile.of_account("shop").accounts();
        }
    }

    #[test]
    fn a_changed_profile_is_refused_or_usable(at in any::<prop::sample::Index>(), bit in 0..8u32) {
        let mut plain = example().0.encode_to_vec();
        let at = at.index(plain.len());
        plain[at] ^= 1 << bit;
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&plain).unwrap();
        if let Ok(profile) = Profile::from_gzip(&encoder.finish().unwrap()) {
            collapsed(&profile, SampleType::AllocSpace);
            let _ = (profile.of_account("shop").accounts(), profile.program(), profile.at());
        }
    }

    #[test]
    fn any_names_come_back(account in ".{0,20}", class in ".{0,20}", function in ".{0,20}") {
        let mut builder = builder();
        let frame = Frame { function: &function, file: "", line: 0 };
        builder.add(&account, &class, [frame], of(8, 8));
        let read = Profile::from_gzip(&builder.finish().to_gzip()).unwrap();
        prop_assert_eq!(read.accounts().into_keys().collect::<Vec<_>>(), [account.as_str()]);
        let text = collapsed(&read, SampleType::InuseSpace);
        prop_assert!(text.ends_with(" 8\n"));
        prop_assert_eq!(text.lines().count(), 1);
        prop_assert_eq!(text.matches(';').count(), 2);
    }
}
