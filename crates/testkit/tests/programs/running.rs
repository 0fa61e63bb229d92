//! What a program says and how it ends.

use toolyard_program::{Ending, How, Printed};

use crate::fixture::{engine, run};

fn finished(text: &str) -> Ending {
    Ending { printed: Printed { text: text.into(), left_out: 0 }, how: How::Finished }
}

#[tokio::test]
async fn what_is_printed_comes_back() {
    let engine = engine();
    assert_eq!(run(&engine, "print(1)").await, Ok(finished("1\n")));
    engine.stop().await;
}

#[tokio::test]
async fn bench_tmp() {
    let engine = engine();
    run(&engine, "print(1)").await.unwrap();
    let zy = engine.process().unwrap();
    let cpu = || -> u64 {
        let own = std::fs::read_to_string("/proc/self/stat").unwrap();
        let z = std::fs::read_to_string(format!("/proc/{zy}/stat")).unwrap();
        let f = |s: &str, k: &[usize]| -> u64 {
            let r = s.rsplit(") ").next().unwrap();
            let v: Vec<&str> = r.split(' ').collect();
            k.iter().map(|i| v[*i].parse::<u64>().unwrap()).sum()
        };
        let s = std::fs::read_to_string("/proc/self/schedstat").unwrap();
        let _ = s;
        f(&own, &[11, 12]) + f(&z, &[11, 12, 13, 14])
    };
    for code in [
        "print(1)",
        "import asyncio\nasync def main():\n    print(1)\nasyncio.run(main())",
        "import asyncio\nawait asyncio.sleep(0)\nprint(1)",
    ] {
        let n = 300;
        let t = std::time::Instant::now();
        let c = cpu();
        for _ in 0..n {
            run(&engine, code).await.unwrap();
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        let used = (cpu() - c) as f64 * 10.0 / n as f64;
        eprintln!("{:?} wall {:.2} ms cpu {:.2} ms", code, t.elapsed().as_secs_f64() * 1e3 / n as f64, used);
    }
    engine.stop().await;
}
