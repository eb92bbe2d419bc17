"""Which release is current: promotion, rollback, history."""
