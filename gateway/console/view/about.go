package view

// AboutPage says what the address of a site is that takes no messages with URLs. Anybody may see
// it, so it names no key.
type AboutPage struct {
	Root    string // see KeysPage
	Address string // address of the site, up to /notify
}

var aboutParts = newParts(source{templates: []string{"about.html"}, styles: []string{mainStyle}, policy: policyReadOnly})

func (p AboutPage) view() view { return view{title: "Notification gateway", parts: aboutParts} }
