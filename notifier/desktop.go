package notifier

// desktop says, by scheme, what shows messages on the screen, or the desk, of
// the person who is logged in. URLs with these schemes are in use elsewhere; a
// server has nobody before it.
var desktop = map[string]string{
	"windows": "Windows",
	"macosx":  "macOS",
	"dbus":    "D-Bus",
	"qt":      "D-Bus",
	"kde":     "D-Bus",
	"glib":    "GLib",
	"gio":     "GLib",
	"gnome":   "GNOME",
	"blink1":  "blink(1)",
}

// unknownScheme is what is wrong with a URL whose scheme no service has.
func unknownScheme(scheme string) *URLError {
	if name := desktop[scheme]; name != "" {
		return &URLError{Problem: "begins with " + scheme + "://, which is for the desktop (" + name + ") and has no place on a server; use a service that reaches people elsewhere"}
	}
	return &URLError{Problem: "begins with " + scheme + "://, which is no service's; caddy notify services lists those that there are"}
}
