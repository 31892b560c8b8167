package alerting

// MaxStepJobs is the maximum number of deliveries in all rounds of a message that
// escalates.
const MaxStepJobs = 500
