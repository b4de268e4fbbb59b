// Notify
