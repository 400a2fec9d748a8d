//! `tickpong reflect`.

use tickpong_runner::{ReflectEvent, ReflectSettings, RunnerError, reflect};

use crate::arguments::ReflectArguments;
use crate::{exit, output, stop};

pub(crate) fn run(arguments: &ReflectArguments) -> anyhow::Result<u8> {
    let stop = stop::on_signals()?;
    let settings = ReflectSettings {
        listen: arguments.listen,
        data: arguments.data,
        interface: arguments.interface.clone(),
        control_interface: arguments.control_interface.clone(),
        join: arguments.join,
        cpu: arguments.cpu,
        avoid: arguments.avoid_cpu.into_iter().collect(),
        api: arguments.api,
        key: arguments.key.key().map_err(RunnerError::from)?,
        insecure: arguments.insecure,
        once: arguments.once,
        hot: arguments.machine.hot(),
        clock: arguments.machine.clock(),
        buffer_bytes: arguments.machine.socket_buffer,
    };
    reflect(&settings, &stop, &tell)?;
    Ok(exit::OK)
}

/// Tells a person, or the program that started this reflector and waits for its first line.
fn tell(event: ReflectEvent) {
    let line = match event {
        ReflectEvent::Listening { address } => format!("listening on {address}\n"),
        ReflectEvent::SentAway { peer, why } => format!("{peer} was sent away: {}\n", tickpong_report::clean(&why)),
        ReflectEvent::Opened { peer, data } => format!("{peer} opened a session; data from {data}\n"),
        ReflectEvent::Closed { peer, received, answered, how } => {
            format!("{peer} closed: {received} received, {answered} answered; {}\n", tickpong_report::clean(&how))
        }
    };
    // Whoever listened may have gone; the sessions go on.
    let _ = output::result(&line);
}
