package view

// KeyTab is a part of a key's pages in the console, with a page of its own.
type KeyTab string

// The tabs of a key.
const (
	TabState    KeyTab = "state"
	TabMessages KeyTab = "messages"
	TabSend     KeyTab = "send" // a [SendPage]
	TabDevices  KeyTab = "devices"
	TabSettings KeyTab = "settings"
)

// KeyTabs are the tabs of a key in order, with their names.
var KeyTabs = []struct {
	Tab  KeyTab
	Name string
}{{TabState, "State"}, {TabMessages, "Messages"}, {TabSend, "Send"}, {TabDevices, "Devices"}, {TabSettings, "Settings"}}

// Tab is an entry of the navigation of a key.
type Tab struct {
	Name, Address string
	Here          bool
}

// Shows reports whether the page shows a tab's content.
func (p KeyPage) Shows(t KeyTab) bool { return p.Tab == t }

// Has reports whether a tab has something to show.
func (p KeyPage) Has(t KeyTab) bool {
	usable := len(p.Destinations) > 0 || p.Inbox != nil || p.Invite
	switch t {
	case TabMessages:
		return p.Saved || p.Fixed
	case TabSend:
		return usable && len(p.Lines) > 0
	case TabDevices:
		return len(p.Devices) > 0 || p.Invite || p.DevicesProblem != ""
	}
	return true
}
