package saved

// Values of Configs.Trust.
const TrustClient = "client"
