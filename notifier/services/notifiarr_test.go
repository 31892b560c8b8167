package services

import "testing"

func TestNotifiarrPing(t *testing.T) {
	for _, c := range []struct {
		text, line string
		user, role any
	}{
		{"disk full", "", 0, 0},
		{"disk full, see ann@example.com", "", 0, 0},
		{"<@12> look", "👉 <@12>", "12", 0},
		{"look <@&34>", "👉 <@&34>", 0, "34"},
		{"@here <@12> <@13> <@&34> <@&35>", "👉 @here <@12> <@13> <@&34> <@&35>", "12", "34"},
	} {
		line, user, role := notifiarrPing(c.text)
		if line != c.line || user != c.user || role != c.role {
			t.Errorf("%q pings %q, %v and %v", c.text, line, user, role)
		}
	}
}
