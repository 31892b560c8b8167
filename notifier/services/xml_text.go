package services

import (
	"regexp"
	"strings"
)

const (
	envelopeStart = `<?xml version='1.0' encoding='utf-8'?>
<soapenv:Envelope
    xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/"
    xmlns:xsd="http://www.w3.org/2001/XMLSchema"
    xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
    <soapenv:Body>
`
	envelopeEnd = `
       </Notification>
    </soapenv:Body>
</soapenv:Envelope>`
	// Receivers tell the standard message by the address of its schema.
	notificationSchema = ` xmlns:xsi="https://raw.githubusercontent.com/caronc/apprise/master/apprise/assets/NotifyXML-1.1.xsd"`
)

var (
	xmlText     = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&apos;")
	notXMLName  = regexp.MustCompile(`[^A-Za-z0-9_-]+`)
	notXMLChars = regexp.MustCompile(`[\x00-\x08\x0b\x0c\x0e-\x1f\x{fffe}\x{ffff}]`)
)

func escapeXML(s string) string { return xmlText.Replace(notXMLChars.ReplaceAllString(s, "")) }
