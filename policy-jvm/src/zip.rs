//! Entries of zip files, read with the JDK's own reader.

use jni::JNIEnv;
use jni::objects::{JByteArray, JObject, JValue};

use crate::env::Jni;

/// Longer texts are cut.
const MAX_BYTES: i32 = 256 * 1024;

impl Jni {
    /// The text of an entry of a zip file; at most 256 KiB of it. `None` if there is none. Runs code of
    /// the JDK and may wait for a file; not on an allocating thread.
    pub fn zip_entry(&self, file: &str, entry: &str) -> Option<String> {
        self.with(|env| {
            let path = env.new_string(file)?;
            let zip = env.new_object(
                "java/util/zip/ZipFile",
                "(Ljava/lang/String;)V",
                &[JValue::Object(&path)],
            )?;
            let text = entry_text(env, &zip, entry);
            if env.exception_check()? {
                env.exception_clear()?;
            }
            env.call_method(&zip, "close", "()V", &[])?;
            text
        })
    }
}

fn entry_text(env: &mut JNIEnv<'_>, zip: &JObject<'_>, entry: &str) -> jni::errors::Result<String> {
    let name = env.new_string(entry)?;
    let entry = env
        .call_method(
            zip,
            "getEntry",
            "(Ljava/lang/String;)Ljava/util/zip/ZipEntry;",
            &[JValue::Object(&name)],
        )?
        .l()?;
    if entry.is_null() {
        return Err(jni::errors::Error::NullPtr("no such entry"));
    }
    let stream = env
        .call_method(
            zip,
            "getInputStream",
            "(Ljava/util/zip/ZipEntry;)Ljava/io/InputStream;",
            &[JValue::Object(&entry)],
        )?
        .l()?;
    let bytes = env
        .call_method(stream, "readNBytes", "(I)[B", &[JValue::Int(MAX_BYTES)])?
        .l()?;
    let bytes = env.convert_byte_array(JByteArray::from(bytes))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
