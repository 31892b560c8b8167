package httpapi

// The parameters in the query of a key that lead to the page of a device.
const (
	InviteQuery = "invite" // with an invitation
	DeviceQuery = "device" // without one
)
