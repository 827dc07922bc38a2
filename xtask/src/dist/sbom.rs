//! The bill of materials, in CycloneDX's JSON.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::dependencies::Crate;
use super::files::hex;
use super::release::VERSION;

/// Writes it. The same crates give the same bytes.
pub(super) fn write(crates: &BTreeMap<String, Crate>, epoch_seconds: u64) -> Result<Vec<u8>> {
    let mut all: Vec<&Crate> = crates.values().collect();
    all.sort_by_key(|one| one.purl());
    let components: Vec<Value> = all.iter().map(|one| component(one)).collect();
    let own = format!("pkg:generic/heapwarden@{VERSION}");
    let mut dependencies: Vec<Value> = Vec::new();
    let shipped: Vec<String> = (all.iter())
        .filter(|one| one.own && matches!(one.name.as_str(), "policy-agent" | "policy-cli"))
        .map(|one| one.purl())
        .collect();
    dependencies.push(json!({"ref": own, "dependsOn": shipped}));
    for one in &all {
        let mut needs: Vec<String> = Vec::new();
        for id in &one.needs {
            needs.push(crates.get(id).context("a crate that is not listed")?.purl());
        }
        needs.sort();
        dependencies.push(json!({"ref": one.purl(), "dependsOn": needs}));
    }
    let time = humantime::format_rfc3339_seconds(
        std::time::UNIX_EPOCH + std::time::Duration::from_secs(epoch_seconds),
    );
    let mut document = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": time.to_string(),
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": "heapwarden",
                "version": VERSION,
                "purl": own,
                "licenses": [{"expression": "Apache-2.0 OR MIT"}],
            },
        },
        "components": components,
        "dependencies": dependencies,
    });
    // A number that names this document, and is the same for the same one.
    let digest = Sha256::digest(serde_json::to_vec(&document)?);
    document["serialNumber"] = Value::from(uuid(&digest));
    let mut text = serde_json::to_vec_pretty(&document)?;
    text.push(b'\n');
    Ok(text)
}

fn component(one: &Crate) -> Value {
    let mut component = json!({
        "type": "library",
        "bom-ref": one.purl(),
        "name": one.name,
        "version": one.version,
        "purl": one.purl(),
        "licenses": [{"expression": one.licence}],
    });
    if let Some(sum) = &one.sha256 {
        component["hashes"] = json!([{"alg": "SHA-256", "content": sum}]);
    }
    if let Some(place) = &one.repository {
        component["externalReferences"] = json!([{"type": "vcs", "url": place}]);
    }
    component
}

/// A UUID of version 8, which holds what its maker likes.
fn uuid(digest: &[u8]) -> String {
    let mut bytes = [0_u8; 16];
    bytes.copy_from_slice(&digest[..16]);
    bytes[6] = bytes[6] & 0x0F | 0x80;
    bytes[8] = bytes[8] & 0x3F | 0x80;
    let text = hex(&bytes);
    format!(
        "urn:uuid:{}-{}-{}-{}-{}",
        &text[..8],
        &text[8..12],
        &text[12..16],
        &text[16..20],
        &text[20..]
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::dependencies;

    #[test]
    fn every_reference_is_to_a_component_that_is_listed() {
        let crates = dependencies::read().unwrap();
        let bytes = write(&crates, 1_700_000_000).unwrap();
        assert_eq!(bytes, write(&crates, 1_700_000_000).unwrap());
        let document: Value = serde_json::from_slice(&bytes).unwrap();
        let components = document["components"].as_array().unwrap();
        let mut known: Vec<&Value> = components.iter().map(|one| &one["bom-ref"]).collect();
        let count = known.len();
        known.push(&document["metadata"]["component"]["bom-ref"]);
        known.sort_by_key(|one| one.to_string());
        known.dedup();
        assert_eq!(known.len(), count + 1, "a reference stands for two");
        for one in document["dependencies"].as_array().unwrap() {
            assert!(known.contains(&&one["ref"]), "{one}");
            for need in one["dependsOn"].as_array().unwrap() {
                assert!(known.contains(&need), "{need}");
            }
        }
    }
}
