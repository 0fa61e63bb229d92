//! Programs in the sandbox, by the launcher of the kit, which differs from the product's only in that it can leave layers
//! out.

#[path = "programs/attacked.rs"]
mod attacked;
#[path = "programs/fixture.rs"]
mod fixture;
#[path = "programs/living.rs"]
mod living;
#[path = "programs/refused.rs"]
mod refused;
#[path = "programs/running.rs"]
mod running;
#[path = "programs/scripts.rs"]
mod scripts;
#[path = "programs/shop.rs"]
mod shop;
