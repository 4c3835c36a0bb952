package kwok

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
)

// ReadInstanceTypes reads a file of instance types. name is the file's name, for errors. There are two formats, which
// are distinguished by their shape:
//
//   - a JSON list, the format of upstream's kwok provider: [{"name", "architecture", "operatingSystems": [],
//     "resources": {}, "offerings": [{"Price", "Available", "Requirements": [{"key", "operator", "values"}]}]}]. Keys
//     are case-insensitive. The overhead is 100m of CPU and 10Mi of memory, as in upstream;
//   - a JSON object {"instanceTypes": [{"name", "arch", "os": [], "capacity": {}, "overhead": {}, "labels": {},
//     "offerings": [{"zone", "capacityType", "price", "available"}], "attachLimits": {}}]}, with labels and overhead of
//     the user's choice. A reserved offering may have "reservationID", "reservationCount" and "reservationEnd" (RFC 3339).
//     The optional attachLimits is the maximum number of volumes per CSI driver on a node, by driver
//     name. Unknown keys are an error.
//
// An offering without a value for availability is available. Prices are in USD per hour.
//
// providerLabels are the keys, sorted, that the file adds to the well-known labels: a NodePool does not have to define
// them. A type without one of them has the requirement DoesNotExist for it. The types are sorted as by
// cloud.SortCatalog.
func ReadInstanceTypes(r io.Reader, name string) (types []cloud.InstanceType, providerLabels []string, err error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, nil, fmt.Errorf("reading instance types from %s: %w", name, err)
	}
	raw, read, err := entriesOf(data)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(raw) == 0 {
		return nil, nil, fmt.Errorf("%s: there are no instance types, want at least one", name)
	}
	entries := make([]entry, 0, len(raw))
	first := map[string]int{}
	for i, text := range raw {
		e, err := read(text)
		if err == nil {
			err = e.check()
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s: instance type %d%s: %w", name, i, quotedName(text), err)
		}
		if earlier, twice := first[e.name]; twice {
			return nil, nil, fmt.Errorf("%s: instance type %d (%q): name: is that of instance type %d, want a name of its own",
				name, i, e.name, earlier)
		}
		first[e.name] = i
		entries = append(entries, e)
	}
	types, providerLabels = catalogOf(entries)
	return types, providerLabels, nil
}

// entry is an instance type of either format.
type entry struct {
	name      string
	arch      string
	os        []string
	capacity  map[string]int64
	overhead  map[string]int64
	labels    map[string]string
	offerings []cloud.Offering
	// attachLimits is by CSI driver name, and nil if the file has none.
	attachLimits map[string]int
}

// entriesOf splits a file into the JSON texts of its instance types, and returns the function that parses one.
func entriesOf(data []byte) ([]json.RawMessage, func(json.RawMessage) (entry, error), error) {
	const want = "want a list of instance types (upstream's format) or an object with the key instanceTypes"
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return nil, nil, errors.New("is empty, " + want)
	}
	var raw []json.RawMessage
	switch data[0] {
	case '[':
		if err := json.Unmarshal(data, &raw); err != nil {
			return nil, nil, jsonProblem(err, data)
		}
		return raw, readListed, nil
	case '{':
		var file struct {
			InstanceTypes *[]json.RawMessage `json:"instanceTypes"`
		}
		if err := json.Unmarshal(data, &file); err != nil {
			return nil, nil, jsonProblem(err, data)
		}
		if file.InstanceTypes == nil {
			return nil, nil, errors.New("is an object without the key instanceTypes, " + want)
		}
		return *file.InstanceTypes, readLabeled, nil
	}
	return nil, nil, fmt.Errorf("begins with %q and is no JSON list or object, %s", data[0], want)
}

// listedType is an instance type in upstream's format. encoding/json matches keys in any case.
type listedType struct {
	Name             string
	Architecture     string
	OperatingSystems []string
	Resources        map[string]amount
	Offerings        []struct {
		Price        *float64
		Available    *bool
		Requirements []struct {
			Key      string
			Operator string
			Values   []string
		}
	}
}

func readListed(text json.RawMessage) (entry, error) {
	var t listedType
	if err := json.Unmarshal(text, &t); err != nil {
		return entry{}, jsonProblem(err, text)
	}
	e := entry{name: t.Name, arch: t.Architecture, os: t.OperatingSystems, overhead: listedOverhead()}
	var err error
	if e.capacity, err = amounts("resources", t.Resources); err != nil {
		return entry{}, err
	}
	for i, o := range t.Offerings {
		offering := cloud.Offering{Available: o.Available == nil || *o.Available}
		if offering.Price, err = price(o.Price); err != nil {
			return entry{}, fmt.Errorf("offerings[%d].Price: %w", i, err)
		}
		for j, r := range o.Requirements {
			if err := addRequirement(&offering, cloud.Requirement{Key: r.Key, Operator: r.Operator, Values: r.Values}); err != nil {
				return entry{}, fmt.Errorf("offerings[%d].Requirements[%d]: %w", i, j, err)
			}
		}
		e.offerings = append(e.offerings, offering)
	}
	if e.name != "" && e.capacity["cpu"] > 0 {
		e.labels = sizeLabels(e.name, e.capacity)
	}
	return e, nil
}

// listedOverhead is the overhead of types in upstream's format
// (https://github.com/kubernetes-sigs/karpenter/tree/main/kwok).
func listedOverhead() map[string]int64 {
	return map[string]int64{"cpu": 100, "memory": 10 << 20}
}

func addRequirement(o *cloud.Offering, r cloud.Requirement) error {
	switch {
	case r.Key == "":
		return errors.New("key: is missing, want a label key")
	case r.Operator != "In" && r.Operator != "DoesNotExist":
		return fmt.Errorf("operator: is %q for %s, want In or DoesNotExist", r.Operator, r.Key)
	case r.Operator == "In" && len(r.Values) == 0:
		return fmt.Errorf("values: is empty for %s, want at least one value", r.Key)
	case r.Key != corev1.LabelTopologyZone && r.Key != karpv1.LabelCapacityType:
		o.Requirements = append(o.Requirements, r)
		return nil
	case len(r.Values) != 1:
		return fmt.Errorf("values: has %d values for %s, want In with exactly one", len(r.Values), r.Key)
	case r.Key == corev1.LabelTopologyZone:
		o.Zone = r.Values[0]
	default:
		o.CapacityType = r.Values[0]
	}
	return nil
}

// labeledType is an instance type in the format with labels.
type labeledType struct {
	Name      string            `json:"name"`
	Arch      string            `json:"arch"`
	OS        []string          `json:"os"`
	Capacity  map[string]amount `json:"capacity"`
	Overhead  map[string]amount `json:"overhead"`
	Labels    map[string]string `json:"labels"`
	Offerings []struct {
		Zone         string   `json:"zone"`
		CapacityType string   `json:"capacityType"`
		Price        *float64 `json:"price"`
		Available    *bool    `json:"available"`
		// The number of machines that a reservation has room for, and when it ends.
		ReservationID    string    `json:"reservationID"`
		ReservationCount int       `json:"reservationCount"`
		ReservationEnd   time.Time `json:"reservationEnd"`
	} `json:"offerings"`
	AttachLimits map[string]int `json:"attachLimits"`
}

func readLabeled(text json.RawMessage) (entry, error) {
	var t labeledType
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&t); err != nil {
		return entry{}, jsonProblem(err, text)
	}
	e := entry{name: t.Name, arch: t.Arch, os: t.OS, labels: t.Labels, attachLimits: t.AttachLimits}
	var err error
	if e.capacity, err = amounts("capacity", t.Capacity); err != nil {
		return entry{}, err
	}
	if e.overhead, err = amounts("overhead", t.Overhead); err != nil {
		return entry{}, err
	}
	for i, o := range t.Offerings {
		offering := cloud.Offering{Zone: o.Zone, CapacityType: o.CapacityType, Available: o.Available == nil || *o.Available,
			ReservationID: o.ReservationID, ReservationCount: o.ReservationCount, ReservationEnd: o.ReservationEnd}
		if o.ReservationID != "" {
			offering.Requirements = []cloud.Requirement{hasValue(LabelReservation, o.ReservationID)}
		}
		if offering.Price, err = price(o.Price); err != nil {
			return entry{}, fmt.Errorf("offerings[%d].price: %w", i, err)
		}
		e.offerings = append(e.offerings, offering)
	}
	return e, nil
}

// amount is the text of a quantity, written as a JSON string or number.
type amount string

func (a *amount) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) != nil {
		text = string(data)
	}
	*a = amount(text)
	return nil
}

func amounts(field string, texts map[string]amount) (map[string]int64, error) {
	parsed := make(map[string]int64, len(texts))
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		quantity, err := karpv1.ParseQuantity(string(texts[name]))
		if err != nil || quantity.Sign() < 0 {
			return nil, fmt.Errorf("%s[%q]: is %q, want a quantity of zero or more such as \"2\", \"500m\" or \"4Gi\"",
				field, name, string(texts[name]))
		}
		parsed[name] = cloud.Amount(name, quantity)
	}
	return parsed, nil
}

func price(p *float64) (float64, error) {
	switch {
	case p == nil:
		return 0, errors.New("is missing, want USD per hour")
	case *p < 0 || math.IsInf(*p, 0) || math.IsNaN(*p):
		return 0, fmt.Errorf("is %v, want zero or more USD per hour", *p)
	}
	return *p, nil
}

// quotedName returns the name in an entry's JSON text, for an error, and an empty string if it cannot be read.
func quotedName(text json.RawMessage) string {
	var named struct{ Name string }
	if _ = json.Unmarshal(text, &named); named.Name == "" {
		return ""
	}
	return fmt.Sprintf(" (%q)", named.Name)
}

// jsonProblem converts a JSON error to a message in terms of the file instead of Go.
func jsonProblem(err error, data []byte) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		before := data[:min(int(syntax.Offset), len(data))]
		line := 1 + bytes.Count(before, []byte("\n"))
		column := len(before) - (bytes.LastIndexByte(before, '\n') + 1)
		return fmt.Errorf("line %d, column %d: is not JSON: %w", line, max(1, column), err)
	}
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) {
		return fmt.Errorf("%s: is a JSON %s, want %s", fieldOr(mismatch.Field), mismatch.Value, jsonWord(mismatch))
	}
	return fmt.Errorf("%w: want the keys of this format only", err)
}

func fieldOr(field string) string {
	if field == "" {
		return "the entry"
	}
	return field
}

func jsonWord(mismatch *json.UnmarshalTypeError) string {
	switch mismatch.Type.Kind().String() {
	case "string":
		return "a string"
	case "bool":
		return "a boolean"
	case "float64":
		return "a number"
	case "slice":
		return "a list"
	}
	return "an object"
}
