package metrics

// The outcomes of calls of the watchdog, in metrics.
const (
	BeatOK       = "ok"
	BeatFailed   = "failed"
	BeatWithheld = "withheld" // a delivery has waited for too long
)
