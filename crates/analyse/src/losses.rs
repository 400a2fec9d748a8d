//! Where lost messages went, as far as the two hosts can see.

use tickpong_record::Losses;
use tickpong_record::capture::SendTotals;

/// What the two hosts saw beside the messages.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Seen {
    /// Datagrams that the pinger's socket dropped.
    pub pinger_socket_drops: u64,
    /// What the reflector reported, where it did.
    pub reflector: Option<ReflectorSaw>,
}

/// What a reflector reported.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ReflectorSaw {
    /// Pings, each once.
    pub received: u64,
    /// Pings whose answer its kernel refused.
    pub unanswered: u64,
    /// Datagrams that its socket dropped.
    pub socket_drops: u64,
}

/// Tells `lost` messages apart. A socket may have dropped other datagrams too, so its drops explain at most what is missing there.
pub fn losses(sent: &SendTotals, lost: u64, seen: &Seen) -> Losses {
    let send_refused = sent.refused;
    let Some(reflector) = seen.reflector else {
        let pinger_socket = seen.pinger_socket_drops.min(lost);
        return Losses { pinger_socket, unexplained: lost - pinger_socket, send_refused, ..Losses::default() };
    };
    let outbound = sent.sent.saturating_sub(reflector.received).min(lost);
    let reflector_socket = reflector.socket_drops.min(outbound);
    let inbound = lost - outbound;
    let reflector_unanswered = reflector.unanswered.min(inbound);
    let pinger_socket = seen.pinger_socket_drops.min(inbound - reflector_unanswered);
    let (on_the_way_out, on_the_way_back) =
        (outbound - reflector_socket, inbound - reflector_unanswered - pinger_socket);
    Losses {
        pinger_socket,
        reflector_socket,
        reflector_unanswered,
        unexplained: on_the_way_out + on_the_way_back,
        unexplained_outbound: Some(on_the_way_out),
        unexplained_inbound: Some(on_the_way_back),
        send_refused,
    }
}
