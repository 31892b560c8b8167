package outbox

// SilencePage is the number of records that are read at once.
const SilencePage = 500
