//! The pluggable module and its cable, from the module's own memory: never its serial number.

use super::super::{FactValue, HostFacts};

/// Where a kind of module keeps what. Positions are in its 256 bytes: a page of the lower half, then one of the upper.
#[derive(Clone, Copy, Debug)]
struct Layout {
    name: &'static str,
    vendor: usize,
    part: usize,
    /// The length of copper or active cable; zero where it is no cable.
    length: usize,
}

/// SFF-8472, SFF-8636 and CMIS.
fn layout(identifier: u8) -> Option<Layout> {
    Some(match identifier {
        0x03 => Layout { name: "SFP", vendor: 20, part: 40, length: 18 },
        0x0c => Layout { name: "QSFP", vendor: 148, part: 168, length: 146 },
        0x0d => Layout { name: "QSFP+", vendor: 148, part: 168, length: 146 },
        0x11 => Layout { name: "QSFP28", vendor: 148, part: 168, length: 146 },
        0x18 => Layout { name: "QSFP-DD", vendor: 129, part: 148, length: 202 },
        0x19 => Layout { name: "OSFP", vendor: 129, part: 148, length: 202 },
        0x1e => Layout { name: "QSFP+ or later with CMIS", vendor: 129, part: 148, length: 202 },
        _ => return None,
    })
}

/// `page` gives 128 bytes of a page from an offset on.
pub(super) fn read(facts: &mut HostFacts, page: &mut dyn FnMut(u8, u32) -> Result<Vec<u8>, String>) {
    let memory = page(0, 0).map(|mut lower| {
        // What has no upper page has all of it in the lower one.
        lower.extend(page(0, 128).unwrap_or_default());
        lower
    });
    let told = memory.and_then(|memory| {
        let identifier = memory.first().copied().unwrap_or_default();
        let layout = layout(identifier).ok_or_else(|| format!("a module of kind {identifier:#04x}, not known here"))?;
        Ok((memory, layout))
    });
    let mut put = |key: &str, of: fn(&[u8], Layout) -> Option<FactValue>| {
        let value = told.as_ref().map_err(Clone::clone);
        facts.put(
            key,
            value.and_then(|(memory, layout)| of(memory, *layout).ok_or_else(|| "the module does not say".to_owned())),
        );
    };
    put("nic.module.kind", |_, layout| Some(FactValue::Text(layout.name.to_owned())));
    put("nic.module.vendor", |memory, layout| words(memory, layout.vendor));
    put("nic.module.part", |memory, layout| words(memory, layout.part));
    put("nic.module.cable_length_cm", length);
}

fn words(memory: &[u8], at: usize) -> Option<FactValue> {
    let text = String::from_utf8_lossy(memory.get(at..at + 16)?).trim().trim_end_matches('\0').to_owned();
    (!text.is_empty()).then_some(FactValue::Text(text))
}

fn length(memory: &[u8], layout: Layout) -> Option<FactValue> {
    let byte = *memory.get(layout.length)?;
    let centimetres = if layout.vendor == 129 {
        // CMIS: a multiplier of a tenth, one, ten or a hundred metres in the upper two bits.
        i64::from(byte & 0x3f) * [10, 100, 1_000, 10_000][usize::from(byte >> 6)]
    } else {
        i64::from(byte) * 100
    };
    Some(FactValue::Integer(centimetres))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(memory: &[u8]) -> Vec<String> {
        let mut facts = HostFacts::default();
        read(&mut facts, &mut |_, offset| {
            let bytes = memory.get(offset as usize..).unwrap_or_default();
            Ok(bytes[..bytes.len().min(128)].to_vec())
        });
        facts.facts.values().map(ToString::to_string).collect()
    }

    #[test]
    fn a_cable_tells_its_make_and_not_its_serial_number() {
        let mut sfp = vec![0; 128];
        sfp[0] = 3;
        sfp[18] = 2;
        sfp[20..36].copy_from_slice(b"Amphenol        ");
        sfp[40..56].copy_from_slice(b"NDCCGF-0002     ");
        sfp[68..84].copy_from_slice(b"APF1234567890   ");
        assert_eq!(told(&sfp), ["200", "SFP", "NDCCGF-0002", "Amphenol"]);
    }

    #[test]
    fn a_cable_of_half_a_metre_is_not_none() {
        let mut dd = vec![0; 256];
        dd[0] = 0x18;
        dd[202] = 5;
        dd[129..145].copy_from_slice(b"Vendor          ");
        assert_eq!(told(&dd), ["50", "QSFP-DD", "Vendor"]);
        dd[202] = 0b0100_0011;
        assert_eq!(told(&dd)[0], "300");
    }

    #[test]
    fn what_is_not_known_is_absent() {
        assert_eq!(told(&[0; 256]), <[String; 0]>::default());
        assert_eq!(told(&[]), <[String; 0]>::default());
    }
}
