//! Reading and writing fields without a way to panic.

use crate::control::BadMessage;

/// The two bytes at `at`, little-endian. The compiler sees the bounds: headers are arrays.
#[inline]
pub(crate) const fn u16_at<const N: usize>(bytes: &[u8; N], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

/// The eight bytes at `at`, little-endian.
#[inline]
pub(crate) fn u64_at<const N: usize>(bytes: &[u8; N], at: usize) -> u64 {
    let mut field = [0; 8];
    field.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(field)
}

/// Takes fields off the front of a message.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], BadMessage> {
        let (field, rest) = self.0.split_first_chunk().ok_or(BadMessage::TooShort)?;
        self.0 = rest;
        Ok(*field)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, BadMessage> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn flag(&mut self) -> Result<bool, BadMessage> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(BadMessage::Field),
        }
    }

    pub(crate) fn u16(&mut self) -> Result<u16, BadMessage> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, BadMessage> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, BadMessage> {
        self.array().map(u64::from_le_bytes)
    }

    /// All that is left, as text.
    pub(crate) fn text(&mut self) -> Result<&'a str, BadMessage> {
        std::str::from_utf8(std::mem::take(&mut self.0)).map_err(|_| BadMessage::Text)
    }

    /// Nothing may be left.
    pub(crate) fn end(&self) -> Result<(), BadMessage> {
        if self.0.is_empty() { Ok(()) } else { Err(BadMessage::TooLong) }
    }
}

/// Puts fields into a buffer, and remembers whether they fitted.
pub(crate) struct Writer<'a> {
    buffer: &'a mut [u8],
    at: usize,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(buffer: &'a mut [u8]) -> Self {
        Self { buffer, at: 0 }
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) -> Result<(), BadMessage> {
        let end = self.at.checked_add(bytes.len()).ok_or(BadMessage::TooLong)?;
        self.buffer.get_mut(self.at..end).ok_or(BadMessage::TooLong)?.copy_from_slice(bytes);
        self.at = end;
        Ok(())
    }

    pub(crate) fn written(&self) -> usize {
        self.at
    }
}
