package awssim

import (
	"encoding/json"
	"regexp"
	"slices"
)

// reshape is a fault's change to the body of a response. Nil leaves it unchanged.
type reshape func(r *request, body []byte) []byte

// reshaped returns the changes that the faults make to the response of a call.
func (c *Cloud) reshaped(r *request) []reshape {
	c.mu.Lock()
	defer c.mu.Unlock()
	var shapes []reshape
	if c.strike(r, FaultOlderFields) != nil {
		shapes = append(shapes, withoutNewerFields)
	}
	if c.strike(r, FaultUnknownFields) != nil {
		shapes = append(shapes, withUnknownFields)
	}
	return shapes
}

// newerFields are members of EC2's responses that were added to the API after 2017, which an older partition or an
// emulator omits. https://docs.aws.amazon.com/AWSEC2/latest/APIReference/OperationList-query.html
var newerFields = []string{"attachedEbsStatus", "availabilityZoneId", "bareMetal", "capacityReservationSpecification",
	"deprecationTime", "enclaveOptions",
	"encryptionInTransitSupported", "httpProtocolIpv6", "impairedSince", "instanceMetadataTags", "networkCardIndex",
	"networkCards", "nitroEnclavesSupport",
	"placementGroupInfo", "reservationType", "tenancy"}

var newerField = func() []*regexp.Regexp {
	var list []*regexp.Regexp
	for _, name := range newerFields {
		list = append(list, regexp.MustCompile(`(?s)<`+name+`>.*?</`+name+`>`))
	}
	return list
}()

// withoutNewerFields removes newerFields from an EC2 response.
func withoutNewerFields(r *request, body []byte) []byte {
	if r.service != "ec2" {
		return body
	}
	for _, field := range newerField {
		body = field.ReplaceAll(body, nil)
	}
	return body
}

const futureField = "futureField"

var (
	xmlStructure = regexp.MustCompile(`<(item|member)><`)
	xmlRequest   = regexp.MustCompile(`(<requestId>[^<]*</requestId>)`)
)

// withUnknownFields adds a member to every structure of a response, as AWS does when it extends an API.
func withUnknownFields(r *request, body []byte) []byte {
	if r.xml {
		added := "<" + futureField + "><kind>new</kind><item><kind>newer</kind></item></" + futureField + ">"
		body = xmlStructure.ReplaceAll(body, []byte("<$1>"+added+"<"))
		return xmlRequest.ReplaceAll(body, []byte("$1"+added))
	}
	var out any
	if json.Unmarshal(body, &out) != nil {
		return body
	}
	addUnknown(out)
	extended, err := json.Marshal(out)
	if err != nil {
		return body
	}
	return extended
}

func addUnknown(value any) {
	switch v := value.(type) {
	case map[string]any:
		for _, inner := range v {
			addUnknown(inner)
		}
		v[futureField] = "new"
	case []any:
		for _, inner := range v {
			addUnknown(inner)
		}
	}
}

// unfiltered removes the filters of a call. The caller holds the lock.
func (c *Cloud) unfiltered(r *request) {
	if r.form == nil || c.strike(r, FaultIgnoreFilters) == nil {
		return
	}
	for _, name := range []string{"Filter", "PathPrefix", "ProductDescription"} {
		delete(r.form.children, name)
	}
}

// oddPage returns a page under FaultOddPages: the first page is empty, pages have half of the items, each begins with
// the last item of the one before, and there is an empty page between two pages.
//
//	""  -> empty  -> from:    (half of the items) -> empty:K -> again:K (K once more, and the rest) -> ...
func oddPage[T any](items []T, token string, size int, key func(T) string) (page []T, next string) {
	kind, after := "", ""
	if k := slices.Index([]byte(token), ':'); k >= 0 {
		kind, after = token[:k], token[k+1:]
	}
	switch kind {
	case "":
		return nil, "from:"
	case "empty":
		return nil, "again:" + after
	}
	size = min(size, max((len(items)+1)/2, 1))
	for len(items) > 0 && (key(items[0]) < after || key(items[0]) == after && kind != "again") {
		items = items[1:]
	}
	if kind == "again" {
		size++
	}
	if len(items) <= size {
		return items, ""
	}
	return items[:size], "empty:" + key(items[size-1])
}
