package view

// AboutPage says what the address of a site without messages for URLs is. It is for
// anybody, so that it names no key.
type AboutPage struct {
	Root    string // as in KeysPage
	Address string // of the site, up to /notify
}

var aboutParts = newParts(source{templates: []string{"about.html"}, styles: []string{mainStyle}, policy: policyReadOnly})

func (p AboutPage) view() view { return view{title: "Notification gateway", parts: aboutParts} }
