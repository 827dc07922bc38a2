//! The options of every subcommand that queries Prometheus.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use ureq::tls::{Certificate, PemItem, RootCerts, parse_pem};

use heapwarden_client::server_address::ServerAddress;
use heapwarden_terminal::clock;

use super::{Client, Error};

/// Largest file with a token or certificates that is read.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// All users of a machine can see arguments, so there is none for the token.
const TOKEN_VARIABLE: &str = "HEAPWARDEN_PROMETHEUS_TOKEN";

/// The address of Prometheus, and the credentials for it.
#[derive(Args, Debug, Clone)]
#[group(skip)]
pub struct Arguments {
    /// The address of Prometheus, with path prefix and user:password@ if needed
    #[arg(
        long,
        value_name = "URL",
        env = "HEAPWARDEN_PROMETHEUS",
        hide_env_values = true
    )]
    pub prometheus: Option<String>,

    /// A file with the bearer token for Prometheus; the token may also be in the environment, as
    /// HEAPWARDEN_PROMETHEUS_TOKEN
    #[arg(long, value_name = "FILE", requires = "prometheus")]
    bearer_token_file: Option<PathBuf>,

    /// The tenant whose data to read (the header X-Scope-OrgID), where Mimir, Cortex or Thanos has several
    #[arg(
        long,
        value_name = "TENANT",
        env = "HEAPWARDEN_PROMETHEUS_ORG_ID",
        requires = "prometheus",
        value_parser = tenant
    )]
    org_id: Option<String>,

    /// A file with certificates (PEM) to trust instead of the public authorities
    #[arg(long, value_name = "FILE", requires = "prometheus")]
    ca_file: Option<PathBuf>,

    /// How long one query may take
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = clock::parse_duration)]
    timeout: Duration,
}

impl Arguments {
    /// The client, if --prometheus was given.
    ///
    /// # Errors
    /// [`Error::Address`] and [`Error::File`].
    pub fn client(&self) -> Result<Option<Client>, Error> {
        let Some(prometheus) = &self.prometheus else {
            return Ok(None);
        };
        let mut address = ServerAddress::new(prometheus)?;
        if let Some(file) = &self.bearer_token_file {
            address = address.with_bearer_token(&String::from_utf8_lossy(&read(file)?))?;
        } else if let Ok(token) = std::env::var(TOKEN_VARIABLE) {
            address = address.with_bearer_token(&token)?;
        }
        let roots = self.ca_file.as_deref().map(roots).transpose()?;
        let client = Client::new(address, self.timeout, roots);
        Ok(Some(client.with_tenant(self.org_id.clone())))
    }
}

/// Checks the name of a tenant: it has to fit into a header.
fn tenant(text: &str) -> Result<String, String> {
    let fits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    fits.then(|| text.to_owned())
        .ok_or_else(|| "a tenant is named with printable ASCII characters, without spaces".into())
}

fn roots(file: &Path) -> Result<RootCerts, Error> {
    let pem = read(file)?;
    let unusable = |why: String| Error::File {
        file: file.display().to_string(),
        why,
    };
    let mut certificates: Vec<Certificate<'static>> = Vec::new();
    for item in parse_pem(&pem) {
        match item {
            Ok(PemItem::Certificate(certificate)) => certificates.push(certificate),
            Ok(_) => {}
            Err(error) => return Err(unusable(error.to_string())),
        }
    }
    if certificates.is_empty() {
        return Err(unusable("it has no certificate in PEM".into()));
    }
    Ok(RootCerts::new_with_certs(&certificates))
}

fn read(file: &Path) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let done = File::open(file)
        .and_then(|open| open.take(MAX_FILE_BYTES).read_to_end(&mut bytes))
        .map_err(|error| Error::File {
            file: file.display().to_string(),
            why: error.to_string(),
        });
    done.map(|_| bytes)
}
