package openapi

import "net/http"

// ofSavedKey adds the answers of all requests that change or show a saved key.
func ofSavedKey(own map[int]Answer) map[int]Answer {
	own[http.StatusForbidden] = plainResult(savedForbidden)
	own[http.StatusNotFound] = plainResult(noSuchKey)
	own[http.StatusServiceUnavailable] = plainResult(storageUnusable)
	return own
}

// Add describes /add/{KEY}.
func Add() About {
	return About{Key: keyThatIsSaved, Operations: []Operation{{
		Method: http.MethodPost, ID: "saveKey", Tag: ofConfiguration,
		Summary: "Save the configuration of a key",
		Description: "It replaces the configuration that the key has. If it has a mistake, the answer names the line, and the saved " +
			"configuration stays as it is. URLs of retired services are left out with a warning.",
		Body: &Body{Required: true, Content: map[string]Media{
			mediaJSON: {Schema: savedFields()},
			mediaForm: {Schema: savedFields()},
			mediaText: {Schema: text()},
		}},
		Answers: map[int]Answer{
			http.StatusOK: says("The configuration is saved or, with `check`, checked.",
				recordsOr(Schema{"anyOf": []Schema{bodyOf("Answer"), bodyOf("CheckedConfig")}}, resultLines)),
			http.StatusBadRequest:            plainResult("The request or the configuration has a mistake, or there are too many keys or URLs."),
			http.StatusForbidden:             plainResult(savedForbidden),
			http.StatusNotFound:              plainResult("The name of the key is malformed."),
			http.StatusRequestEntityTooLarge: plainResult("The configuration is too large."),
			http.StatusServiceUnavailable:    plainResult(storageUnusable),
		},
	}}}
}

// CheckQuery describes ?check of /add/{KEY}.
func CheckQuery() *Parameter {
	p := inQuery("check", Schema{"enum": []string{"", "local"}},
		"Saves nothing, and returns every mistake with its line. With the value `local`, files that the configuration includes are not fetched.")
	return &p
}

// TestQuery describes ?test of /cfg/{KEY}.
func TestQuery() *Parameter {
	return &Parameter{
		Name: "test", In: "query", Required: true, MayBeEmpty: true, Description: "A parameter without a value.",
		Schema: Schema{"const": ""},
	}
}

// savedFields are the fields of a request that saves a key.
func savedFields() Schema {
	return object(Schema{
		"urls": Schema{
			"type": []string{"string", "array"}, "items": text(),
			"description": "Notification URLs: a text with commas between them, or an array.",
		},
		"config": described(text(), "A configuration in a format of Apprise, instead of `urls`."),
		"format": Schema{
			"enum":        []string{"text", "yaml", "auto"},
			"description": "The format of `config`. Required in JSON; in forms the default is `auto`.",
		},
	})
}

// Get describes /get/{KEY}.
func Get() About {
	return About{Key: keyThatIsSaved, Operations: []Operation{{
		Method: http.MethodPost, ID: "readKey", Tag: ofConfiguration,
		Summary:     "Read the configuration of a key",
		Description: "`POST /cfg/{KEY}` is the same.",
		Answers: ofSavedKey(map[int]Answer{
			http.StatusOK: says("The configuration.", map[string]Schema{
				mediaText: described(text(), "The configuration as it was saved. The media type is `text/yaml` for YAML."),
				mediaJSON: object(Schema{
					"format": Schema{"enum": []string{"text", "yaml"}},
					"config": text(),
				}, "format", "config"),
			}),
		}),
	}}}
}

// Del describes /del/{KEY}.
func Del() About {
	return About{Key: keyThatIsSaved, Operations: []Operation{{
		Method: http.MethodPost, ID: "deleteKey", Tag: ofConfiguration,
		Summary: "Delete the configuration of a key",
		Answers: ofSavedKey(map[int]Answer{http.StatusOK: plainResult("The configuration is deleted.")}),
	}}}
}

// Move describes /move/{KEY}.
func Move() About {
	return About{Key: keyThatIsSaved, Operations: []Operation{{
		Method: http.MethodPost, ID: "moveKey", Tag: ofConfiguration,
		Summary: "Give a saved key another name",
		Description: "What belongs to the key stays with it: its tokens, devices, silences, incidents and inbox, and what waits for its " +
			"destinations. Clients do not find it under the old name any more.",
		Body: forms(object(Schema{
			"to":   described(text(), "The new name."),
			"from": described(text(), "The old name, which the address has, too."),
		}, "to"), mediaJSON, mediaForm),
		Answers: ofSavedKey(map[int]Answer{
			http.StatusOK:                    plainResult("The key has the new name."),
			http.StatusBadRequest:            plainResult("The new name is missing, malformed or reserved, or the key has it already."),
			http.StatusConflict:              plainResult("Another saved key has the new name."),
			http.StatusRequestEntityTooLarge: plainResult("The request is larger than 8 KiB."),
		}),
	}}}
}

// Keys describes /cfg.
func Keys() About {
	unread := streamed()
	delete(unread, mediaHTML) // a browser is redirected to the console before they are read
	return About{Operations: []Operation{{
		Method: http.MethodGet, ID: "listKeys", Tag: ofConfiguration,
		Summary: "List the saved keys",
		Answers: map[int]Answer{
			http.StatusOK:                 says("The keys.", map[string]Schema{mediaJSON: listOf(text())}),
			http.StatusSeeOther:           says("The request prefers `text/html`; the page of the console is at `Location`.", nil),
			http.StatusForbidden:          plainResult(savedForbidden),
			http.StatusServiceUnavailable: says(storageUnusable, unread),
		},
	}}}
}

// SavedKey describes /cfg/{KEY}.
func SavedKey() About {
	return About{
		Key: "The name of a saved key, or of a key in the gateway's configuration. Upper and lower case differ.",
		Operations: []Operation{{
			Method: http.MethodPost, ID: "testDestination", Tag: ofConfiguration,
			Summary: "Send a test message to one destination of a key",
			Description: "The message goes to that destination alone, under the rules of the key, in one attempt that does not use the queue. " +
				"Without `?test`, the request is that of `/get/{KEY}`.",
			Body: forms(object(Schema{
				"destination": Schema{"type": "integer", "minimum": 1, "description": "The number of the destination in the key, counted from 1."},
				"shown": described(text(), "The URL of the destination as `/json/urls/{KEY}` shows it. If the destination now has another URL, "+
					"the answer is 409."),
				"url": described(text(), "A notification URL to test as if it were saved under the key, in place of `destination`. The key "+
					"cannot be in the gateway's configuration."),
			}), mediaForm),
			Answers: map[int]Answer{
				http.StatusOK: plainResult("The destination has accepted the message. A page and a stream have the status 200 in " +
					"every case: the page shows the result, and the last line of the stream has the status.").streamed(),
				http.StatusBadRequest: plainResult("There is no such destination, or the URL cannot be used."),
				http.StatusForbidden: plainResult("Saved keys cannot be managed here or by this client, the pages are turned off, or a " +
					"page of another site sent the request."),
				http.StatusNotFound:              plainResult(noSuchKey),
				http.StatusRequestTimeout:        plainResult("The request took too long to arrive."),
				http.StatusConflict:              plainResult("The key has changed, and this number belongs to another destination now."),
				http.StatusRequestEntityTooLarge: plainResult("The request is larger than 512 KiB."),
				http.StatusFailedDependency: says("The destination does not have the message. The error says why.", map[string]Schema{
					mediaText: described(text(), "One line for each log record: `YYYY-MM-DD HH:MM:SS,mmm [LEVEL] text`."),
					mediaJSON: bodyOf("Answer"),
				}),
				http.StatusServiceUnavailable: plainResult("Too many messages are under way, or the storage of saved keys cannot be read; try again " +
					"after `Retry-After`."),
			},
		}},
	}
}

// Token describes /cfg/{KEY}/token.
func Token() About {
	return About{Key: keyThatIsSaved, Operations: []Operation{{
		Method: http.MethodPost, ID: "addToken", Tag: ofConfiguration,
		Summary:     "Make a further token of a saved key",
		Description: "From then on, the key needs a token. The answer shows the new one; only its hash is stored. A key has at most 10.",
		Answers: ofSavedKey(map[int]Answer{
			http.StatusOK: says("The token, as text, as JSON, or for browsers on a page.", map[string]Schema{
				mediaText: text(),
				mediaJSON: object(Schema{
					"token": text(),
					"count": Schema{"type": "integer", "description": "How many tokens the key has now."},
				}, "token", "count"),
				mediaHTML: text(),
			}, "Cache-Control"),
			http.StatusBadRequest: plainResult("The key has 10 tokens; remove the older ones first."),
		}),
	}, {
		Method: http.MethodDelete, ID: "removeOldTokens", Tag: ofConfiguration,
		Summary: "Remove all tokens of a saved key but the newest",
		Answers: ofSavedKey(map[int]Answer{http.StatusOK: plainResult("The older tokens are removed.")}),
	}}}
}

// URLs describes /json/urls/{KEY}.
func URLs() About {
	return About{Key: keyThatIsSaved, Operations: []Operation{{
		Method: http.MethodGet, ID: "listURLs", Tag: ofConfiguration,
		Summary: "List the destinations of a key, with their secrets masked",
		Description: "Works for saved keys and for keys in the gateway's configuration. A key that has tokens or readers shows its " +
			"destinations to its readers, and to those who may manage saved keys.",
		Parameters: []any{inQuery("tag", text(), "A tag expression that chooses among the destinations. Without it, all are listed.")},
		Answers: map[int]Answer{
			http.StatusOK: says("The destinations.", map[string]Schema{
				mediaJSON: object(Schema{
					"tags": listOf(text()),
					"urls": listOf(object(Schema{
						"id": Schema{
							"type": []string{"string", "null"},
							"description": "An ID of the URL, equal at all instances that share the storage. It does not reveal the URL. `null` while the " +
								"storage cannot be read.",
						},
						"service_name": text(),
						"enabled":      Schema{"type": "boolean"},
						"url":          text(),
						"retry":        Schema{"type": "integer"},
						"optional":     Schema{"type": "boolean"},
						"tags":         Schema{"type": "array", "description": "The names of the tags, in lower case and without numbers.", "items": text()},
						"tag_details": Schema{"type": "array", "description": "The tags with their numbers.", "items": object(Schema{
							"name":     text(),
							"priority": Schema{"type": "integer", "minimum": 0, "description": "The number; 0 for a tag without one."},
							"token":    described(text(), "The tag as the configuration has it, such as `2:ops`."),
							"exact":    described(text(), "The tag with its number, which selects only this number."),
						}, "name", "priority", "token", "exact")},
					})),
				}, "tags", "urls"),
			}),
			http.StatusBadRequest: plainResult("The tag expression is malformed."),
			http.StatusUnauthorized: unauthorized("The key has a token or a reader and this needs a reader, or one of the keys does and " +
				"this key does not exist."),
			http.StatusNotFound:           plainResult(noSuchKey),
			http.StatusServiceUnavailable: plainResult(storageUnusable),
		},
	}}}
}

// Status describes /status.
func Status() About {
	return About{Operations: []Operation{{
		Method: http.MethodGet, ID: "storage", Tag: ofConfiguration,
		Summary: "Check the storage of saved keys",
		Answers: map[int]Answer{
			http.StatusOK:                storage("The storage works. The text is `OK`."),
			http.StatusExpectationFailed: storage("The storage cannot be read or written."),
		},
	}}}
}

// StatusOfKey describes /status/{KEY}.
func StatusOfKey() About {
	return About{Key: keyThatIsSaved, Operations: []Operation{{
		Method: http.MethodGet, ID: "storageOfKey", Tag: ofConfiguration,
		Summary:     "Check the storage of saved keys, for a client of a key",
		Description: "The answer is the same as at `/status`. It does not tell whether the key exists.",
		Answers: map[int]Answer{
			http.StatusOK:                storage("The storage works. The text is `OK`."),
			http.StatusUnauthorized:      plainResult(needsToken).with("WWW-Authenticate"),
			http.StatusExpectationFailed: storage("The storage cannot be read or written."),
		},
	}}}
}

const needsToken = "The key needs a token, or one of the keys does and this key does not exist."

// storage returns an answer with the state of the storage.
func storage(description string) Answer {
	return says(description, map[string]Schema{
		mediaText: text(),
		mediaJSON: object(Schema{
			"config_lock":       described(Schema{"type": "boolean"}, "The client may not change saved configurations."),
			"attach_lock":       described(Schema{"type": "boolean"}, "Messages cannot have attachments."),
			"stateful_enabled":  Schema{"type": "boolean"},
			"stateless_enabled": described(Schema{"type": "boolean"}, "Messages can have URLs."),
			"degraded":          described(Schema{"type": "boolean"}, "Neither of both is enabled."),
			"max_attachments":   Schema{"type": "integer"},
			"attach_size":       described(Schema{"type": "integer"}, "The maximum size of an attachment in bytes."),
			"status":            described(object(nil), "What can be read and written."),
			"privilege":         described(oneOf("admin", "user"), "`admin` for who may manage saved keys."),
		}),
	})
}

// QR describes /qr/{KEY}.
func QR() About {
	return About{Key: "The name of a key. Upper and lower case differ.", Operations: []Operation{{
		Method: http.MethodGet, ID: "qr", Tag: ofConfiguration,
		Summary:     "The address of a key for Apprise Mobile",
		Description: "For the QR code on the page of a key. It has no secret.",
		Answers: map[int]Answer{
			http.StatusOK: says("The `apprise://` URL. An `@` alone stands for a token of the key, and `:NAME@` for a login of the site.",
				map[string]Schema{
					mediaJSON: object(Schema{
						"url":                    text(),
						"uses_admin_credentials": described(Schema{"type": "boolean"}, "The URL needs the login of the site."),
					}),
				}),
			http.StatusUnauthorized: plainResult(needsToken).with("WWW-Authenticate"),
			http.StatusNotFound:     plainResult(noSuchKey),
		},
	}}}
}

// Details describes /details.
func Details() About {
	return About{Operations: []Operation{{
		Method: http.MethodGet, ID: "details", Tag: ofConfiguration,
		Summary:    "The version of the gateway and its services",
		Parameters: []any{inQuery("all", text(), "`yes` also lists the services that the site does not allow. Then each has `enabled`.")},
		Answers: map[int]Answer{
			http.StatusOK: says("The version, the services as `schemas`, and the identity of the site as `asset`.", map[string]Schema{
				mediaJSON: object(Schema{
					"version": text(),
					"schemas": listOf(object(Schema{
						"service_name":       text(),
						"service_url":        Schema{"type": []string{"string", "null"}},
						"setup_url":          described(text(), "The page that tells how to write a URL of the service."),
						"attachment_support": Schema{"type": "boolean"},
						"category":           text(),
						"groups": Schema{
							"type":        "array",
							"items":       oneOf("chat", "phone", "mail", "sms", "incident", "home", "media", "social", "server", "regional", "other"),
							"description": "What the service is for; the main group is the first. Not in the Apprise API.",
						},
						"words": Schema{
							"type": "array", "items": text(),
							"description": "Other names, brands and apps by which people search for the service. Not in the Apprise API.",
						},
						"enabled":          Schema{"type": "boolean", "description": "With `all`: whether the site allows the service."},
						"protocols":        Schema{"type": []string{"array", "null"}, "items": text()},
						"secure_protocols": Schema{"type": []string{"array", "null"}, "items": text()},
						"details": object(Schema{
							"templates": Schema{"type": "array", "description": "The forms of the URL, such as `{schema}://{host}/{token}`.", "items": text()},
							"tokens":    Schema{"type": "object", "description": "The parameters with a place in a template."},
							"args":      Schema{"type": "object", "description": "The parameters of the query, and other names as `alias_of`."},
							"kwargs":    Schema{"type": "object", "description": "The parameters whose names begin with a `prefix`, such as `+` for headers."},
						}, "templates", "tokens", "args", "kwargs"),
					}, "service_name", "service_url", "setup_url", "attachment_support", "category", "protocols", "secure_protocols", "details")),
					"asset": Schema{
						"type": "object", "description": "`app_id`, `app_desc`, `app_url`, `image_url_mask` and `image_url_logo`.",
						"additionalProperties": text(),
					},
				}, "version", "schemas", "asset"),
			}),
		},
	}}}
}
