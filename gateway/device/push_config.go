package device

// Values of devices in push.
const (
	DevicesInvited = "invited"
	DevicesUsers   = "users"
)

// The bounds of max_devices.
const MaxMaxDevices = 500
