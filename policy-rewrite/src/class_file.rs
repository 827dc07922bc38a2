//! A class file (§4.1) as far as insertions need it: its names, its methods, where their code stands.

use std::ops::Range;

use crate::code::Code;
use crate::error::RewriteError;
use crate::input::Input;
use crate::pool::ConstantPool;

const MAGIC: u32 = 0xCAFE_BABE;
/// JDK 1.1.
pub(crate) const OLDEST: u16 = 45;
/// JDK 25.
pub(crate) const NEWEST: u16 = 69;
/// From this version on frames are checked, and nothing else (§4.10).
pub(crate) const FIRST_WITH_FRAMES: u16 = 50;

/// A class file whose structure was read and understood. It borrows the bytes.
#[derive(Debug)]
pub struct ClassFile<'a> {
    pub(crate) bytes: &'a [u8],
    /// The constant pool with its count.
    pub(crate) pool_range: Range<usize>,
    version: u16,
    /// The constant that names it.
    pub(crate) this: u16,
    name: &'a [u8],
    pool: ConstantPool<'a>,
    methods: Vec<Method<'a>>,
}

/// One method of a class file.
#[derive(Debug, Clone)]
pub struct Method<'a> {
    /// Its place among the class's methods.
    pub(crate) index: usize,
    access_flags: u16,
    name: &'a [u8],
    descriptor: &'a [u8],
    code: Option<Range<usize>>,
    bytes: &'a [u8],
}

impl<'a> ClassFile<'a> {
    /// Reads the structure of the class file `bytes`; the code of its methods is read by
    /// [`Method::code`].
    ///
    /// # Errors
    /// If it is none, of an unknown version, or not as the specification has it.
    pub fn parse(bytes: &'a [u8]) -> Result<ClassFile<'a>, RewriteError> {
        // Offsets into it are kept in four bytes.
        if u32::try_from(bytes.len()).is_err() {
            return Err(RewriteError::Overlong("the class file"));
        }
        let mut input = Input::new(bytes, "the class file");
        if input.u4() != Ok(MAGIC) {
            return Err(RewriteError::NotAClassFile);
        }
        let _minor = input.u2()?;
        let version = input.u2()?;
        if !(OLDEST..=NEWEST).contains(&version) {
            return Err(RewriteError::Version(version));
        }
        let pool_start = input.position();
        let pool = ConstantPool::parse(bytes, &mut input)?;
        let pool_range = pool_start..input.position();
        let _access = input.u2()?;
        let this = input.u2()?;
        let name = pool.class(this)?;
        let _super = input.u2()?;
        let interfaces = input.u2()?;
        input.take(usize::from(interfaces) * 2)?;
        for _ in 0..input.u2()? {
            input.take(6)?;
            for _ in 0..input.u2()? {
                skip_attribute(&mut input)?;
            }
        }
        let mut methods = Vec::new();
        for index in 0..usize::from(input.u2()?) {
            let access_flags = input.u2()?;
            let name = pool.text(input.u2()?)?;
            let descriptor = pool.text(input.u2()?)?;
            let mut code = None;
            for _ in 0..input.u2()? {
                let start = input.position();
                let is_code = pool.text(skip_attribute(&mut input)?)? == b"Code";
                if is_code && code.replace(start..input.position()).is_some() {
                    return Err(RewriteError::Twice("the code of a method"));
                }
            }
            methods.push(Method {
                index,
                access_flags,
                name,
                descriptor,
                code,
                bytes,
            });
        }
        for _ in 0..input.u2()? {
            skip_attribute(&mut input)?;
        }
        input.end()?;
        Ok(ClassFile {
            bytes,
            pool_range,
            version,
            this,
            name,
            pool,
            methods,
        })
    }

    /// The class's name, as `java/lang/Object`, in modified UTF-8.
    #[must_use]
    pub fn name(&self) -> &'a [u8] {
        self.name
    }

    /// The class file with another name, in modified UTF-8. What it says of itself by its class alone keeps true: its
    /// own fields and methods; not descriptors that have its name in them, or classes inside.
    ///
    /// # Errors
    /// If the name is too long.
    pub fn renamed(&self, name: &str) -> Result<Vec<u8>, RewriteError> {
        let length =
            u16::try_from(name.len()).map_err(|_| RewriteError::Overlong("the name of a class"))?;
        let old = self.pool.class_range(self.this)?;
        let mut file = self.bytes[..old.start].to_vec();
        file.extend(length.to_be_bytes());
        file.extend(name.as_bytes());
        file.extend(&self.bytes[old.end..]);
        Ok(file)
    }

    /// The major version: 61 is JDK 17.
    #[must_use]
    pub fn version(&self) -> u16 {
        self.version
    }

    /// The constants that its code names.
    #[must_use]
    pub fn pool(&self) -> &ConstantPool<'a> {
        &self.pool
    }

    /// Its methods in their order.
    #[must_use]
    pub fn methods(&self) -> &[Method<'a>] {
        &self.methods
    }
}

impl<'a> Method<'a> {
    /// The name, in modified UTF-8.
    #[must_use]
    pub fn name(&self) -> &'a [u8] {
        self.name
    }

    /// The descriptor, in modified UTF-8.
    #[must_use]
    pub fn descriptor(&self) -> &'a [u8] {
        self.descriptor
    }

    /// The access flags (§4.6).
    #[must_use]
    pub fn access_flags(&self) -> u16 {
        self.access_flags
    }

    /// Reads the method's code; `None` for an abstract or native one.
    ///
    /// # Errors
    /// If it is not as the specification has it.
    pub fn code(&self) -> Result<Option<Code<'a>>, RewriteError> {
        // Behind the attribute's name and length.
        let range = self.code_range().map(|range| range.start + 6..range.end);
        range
            .map(|range| Code::parse(&self.bytes[range]))
            .transpose()
    }

    /// Where the attribute `Code` stands in the class file, its name and length included.
    pub(crate) fn code_range(&self) -> Option<Range<usize>> {
        self.code.clone()
    }
}

/// Gives the index of the attribute's name.
fn skip_attribute(input: &mut Input<'_>) -> Result<u16, RewriteError> {
    let name = input.u2()?;
    let length = input.u4()?;
    input.take(length as usize)?;
    Ok(name)
}
