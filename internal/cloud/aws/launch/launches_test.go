package launch

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	yamlv3 "go.yaml.in/yaml/v3"
	"golang.org/x/tools/txtar"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/instance"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/userdata"
	"github.com/karpenter-go/karpenter/internal/testing/golden"
)

// showcase holds the settings of a launch in testdata, besides its class and its claim.
type showcase struct {
	Region string   `json:"region"`
	Types  []string `json:"types"`
	Zones  int      `json:"zones"`
	Claims int      `json:"claims"`
	IPv6   bool     `json:"ipv6"`
	// OpenReservations means that the feature gate ReservedCapacity is off.
	OpenReservations bool `json:"openReservations"`
	// Left is the number of instances that a capacity reservation has room for, 2 if it is not given.
	Left map[string]int `json:"left"`
	// Placement is the placement group of the class.
	Placement instance.PlacementGroup `json:"placement"`
	// LastLine is how often the last line of the class's user data is repeated.
	LastLine int `json:"lastLine"`
	// Prices are of a NodeOverlay, in USD per hour by type.
	Prices map[string]float64 `json:"prices"`
}

// TestLaunches compares what the controller sends for a launch with testdata: the launch templates, their user data,
// decoded, and the fleet. Each file has a sentence, the pages of AWS that describe what is shown, what differs from the
// plain class and claim, and the requests; -update writes these, and the index testdata/README.md.
func TestLaunches(t *testing.T) {
	golden.Each(t, func(t *testing.T, file *golden.File) {
		s, o := ordered(t, file)
		p, err := newPlan(o, s.Region)
		if err != nil {
			t.Fatal(err)
		}
		subnets := map[string]string{}
		for _, subnet := range o.Class.Status.Subnets {
			subnets[subnet.Zone] = subnet.ID
		}
		with := &txtar.Archive{Comment: file.Comment, Files: slices.DeleteFunc(slices.Clone(file.Files), func(f txtar.File) bool {
			return !slices.Contains([]string{"documentation", "settings.yaml", "nodeclass.yaml", "nodeclaim.yaml"}, f.Name)
		})}
		add := func(name, text string) {
			with.Files = append(with.Files, txtar.File{Name: name, Data: []byte(strings.TrimRight(text, "\n") + "\n")})
		}
		for i, v := range p.variants {
			made := p.templates[v]
			user := *made.data.UserData
			number := ""
			if len(p.variants) > 1 {
				number = fmt.Sprintf(" %d", i+1)
			}
			add("user data"+number, decoded(t, user))
			add("CreateLaunchTemplate"+number, strings.ReplaceAll(readable(t, made.request()), user, "(user data"+number+")"))
		}
		add("CreateFleet", readable(t, p.request(Record{Batch: "0123456789abcdef", Attempt: 1, Size: s.Claims}, nil, subnets)))
		file.CheckAll(t, with)
	})
}

// ordered returns the settings and the order of a file.
func ordered(t *testing.T, file *golden.File) (showcase, *Order) {
	t.Helper()
	s := showcase{Region: "us-east-1", Types: []string{"m5.large"}, Zones: 2, Claims: 1}
	class, claim := &awsv1.EC2NodeClass{}, &karpv1.NodeClaim{}
	for name, into := range map[string]any{"settings.yaml": &s, "nodeclass.yaml": class, "nodeclaim.yaml": claim} {
		if err := yaml.UnmarshalStrict(file.Section(name), into); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	complete(class, s)
	completeClaim(claim, s)
	facts := instance.ClassOf(class)
	facts.Placement = s.Placement
	var types []catalog.Type
	for _, name := range s.Types {
		found, ok := catalog.Load().Type(name)
		if !ok {
			t.Fatalf("there is no type %s", name)
		}
		types = append(types, *found)
	}
	set, err := instance.NewTypeSet(types, &facts, &instance.Settings{Region: s.Region, MemoryOverheadPercent: 0.075, IPv6: s.IPv6,
		KubeletExpressions: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Excluded()) > 0 {
		t.Fatalf("types that the class excludes: %v", set.Excluded())
	}
	cluster := userdata.Cluster{Name: "prod", Endpoint: "https://0123456789ABCDEF.gr7." + s.Region + ".eks.amazonaws.com",
		CABundle: base64.StdEncoding.EncodeToString([]byte("certificates")), ServiceCIDR: "10.100.0.0/16", DNS: "10.100.0.10"}
	if s.IPv6 {
		cluster.IPv6, cluster.ServiceCIDR, cluster.DNS = true, "fd12:3456::/108", "fd12:3456::a"
	}
	return s, &Order{Claim: claim, Class: class, Types: sold(s, set), Image: set.Image, Resolved: set.Resolved, Cluster: cluster,
		Placement:        set.Placement(),
		OpenReservations: s.OpenReservations || class.Annotations[awsv1.AnnotationOpenReservations] == "true"}
}

// sold returns the catalog with built-in prices; spot costs 40 percent of on demand, a little more in later zones.
func sold(s showcase, set *instance.TypeSet) []cloud.InstanceType {
	prices := instance.NewPrices(s.Region, catalog.Load())
	types := set.Catalog(&instance.Market{OnDemand: prices.OnDemand, Unavailable: func(instance.Offer) time.Time { return time.Time{} },
		Left: func(id string) (int, string) {
			if left, given := s.Left[id]; given {
				return left, ""
			}
			return 2, ""
		},
		Spot: func(name, zone string) (float64, bool) {
			price, known := prices.OnDemand(name)
			return math.Round(price*(0.4+float64(zone[len(zone)-1]-'a')/100)*1e4) / 1e4, known
		}})
	for i := range types {
		if price, overlaid := s.Prices[types[i].Name]; overlaid {
			for j := range types[i].Offerings {
				types[i].Offerings[j].Price = price
			}
		}
	}
	cloud.SortCatalog(types)
	return types
}

// complete adds to a class what the file does not have: a plain class, as the API server and the controller complete it.
func complete(class *awsv1.EC2NodeClass, s showcase) {
	class.Name = "default"
	spec, status := &class.Spec, &class.Status
	if len(spec.AMISelectorTerms) == 0 {
		spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Alias: "al2023@v20261101"}}
	}
	if spec.MetadataOptions == nil { // the default of the CRD
		enabled, disabled, required, hops := "enabled", "disabled", "required", int64(1)
		spec.MetadataOptions = &awsv1.MetadataOptions{HTTPEndpoint: &enabled, HTTPProtocolIPv6: &disabled, HTTPTokens: &required,
			HTTPPutResponseHopLimit: &hops}
	}
	if text := strings.TrimRight(aws.ToString(spec.UserData), "\n"); s.LastLine > 0 {
		spec.UserData = new(text + strings.Repeat("\n"+text[strings.LastIndexByte(text, '\n')+1:], s.LastLine) + "\n")
	}
	status.InstanceProfile = "prod_0123456789"
	if len(status.SecurityGroups) == 0 {
		status.SecurityGroups = []awsv1.SecurityGroup{{ID: "sg-0123456789abcdef0"}}
	}
	if len(status.Subnets) == 0 {
		for i := range s.Zones {
			status.Subnets = append(status.Subnets, awsv1.Subnet{
				ID: fmt.Sprintf("subnet-%c", 'a'+i), Zone: fmt.Sprintf("%s%c", s.Region, 'a'+i), ZoneID: fmt.Sprintf("use1-az%d", i+1)})
		}
	}
	for _, architecture := range []string{"amd64", "arm64"} {
		status.AMIs = append(status.AMIs, awsv1.AMI{ID: "ami-" + architecture, Name: "image-for-" + architecture,
			Requirements: []corev1.NodeSelectorRequirement{{Key: corev1.LabelArchStable, Operator: "In", Values: []string{architecture}}}})
	}
}

// completeClaim adds to a claim what the file does not have: a pool, and requirements for on-demand machines of the types.
func completeClaim(claim *karpv1.NodeClaim, s showcase) {
	claim.Name, claim.UID = "default-abcde", "uid"
	if claim.Labels == nil {
		claim.Labels = map[string]string{}
	}
	claim.Labels[karpv1.LabelNodePool] = "default"
	for _, r := range []karpv1.Requirement{oneOf(corev1.LabelInstanceTypeStable, s.Types...),
		oneOf(karpv1.LabelCapacityType, karpv1.CapacityTypeOnDemand)} {
		if !slices.ContainsFunc(claim.Spec.Requirements, func(given karpv1.Requirement) bool { return given.Key == r.Key }) {
			claim.Spec.Requirements = append(claim.Spec.Requirements, r)
		}
	}
}

// decoded returns user data as text, and also if it is compressed. Lines that repeat are counted.
func decoded(t *testing.T, text string) string {
	t.Helper()
	plain, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	if reader, err := gzip.NewReader(bytes.NewReader(plain)); err == nil {
		inner, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		return "(compressed with gzip)\n" + shortened(string(inner))
	}
	return shortened(string(plain))
}

// shortened returns text in which the repetitions of a line, if there are many, are a number.
func shortened(text string) string {
	var b strings.Builder
	lines := slices.Collect(strings.Lines(text))
	for i := 0; i < len(lines); {
		end := i + 1
		for end < len(lines) && lines[end] == lines[i] {
			end++
		}
		if b.WriteString(lines[i]); end-i > 10 {
			fmt.Fprintf(&b, "(%d times)\n", end-i)
		} else {
			end = i + 1
		}
		i = end
	}
	return b.String()
}

// readable returns a request as YAML with the names of AWS's API reference, without what is empty. Objects that fit into
// a line are in one line.
func readable(t *testing.T, request any) string {
	t.Helper()
	text, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	var node yamlv3.Node
	if err := node.Encode(filled(value)); err != nil {
		t.Fatal(err)
	}
	inline(&node)
	var out bytes.Buffer
	encoder := yamlv3.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(&node); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// filled returns a value without null, empty texts and empty collections.
func filled(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, below := range v {
			if v[key] = filled(below); v[key] == nil {
				delete(v, key)
			}
		}
		if len(v) == 0 {
			return nil
		}
	case []any:
		for i := range v {
			v[i] = filled(v[i])
		}
		if len(v) == 0 {
			return nil
		}
	case string:
		if v == "" {
			return nil
		}
	}
	return value
}

// inline writes objects of plain values in one line, up to about 140 characters.
func inline(n *yamlv3.Node) (length int) {
	length, plain := len(n.Value)+4, true
	for _, below := range n.Content {
		length += inline(below)
		plain = plain && (len(below.Content) == 0 || below.Style&yamlv3.FlowStyle != 0 && n.Kind == yamlv3.SequenceNode)
	}
	if n.Kind == yamlv3.MappingNode && plain && length < 160 {
		n.Style = yamlv3.FlowStyle
	}
	if n.Kind == yamlv3.SequenceNode && !slices.ContainsFunc(n.Content, func(c *yamlv3.Node) bool { return c.Kind != yamlv3.ScalarNode }) {
		n.Style = yamlv3.FlowStyle
	}
	return length
}

const launchesHead = `# Launches

What the controller sends to EC2 for one launch, by feature: user data (decoded), launch templates and the fleet. Written
by ` + "`go test ./internal/cloud/aws/launch -run TestLaunches -update`" + `; empty values are left out. A case is a file with a sentence,
the section ` + "`documentation`" + `, and what differs from the plain class and claim.

| case | shows | AWS |
|---|---|---|
`

// TestLaunchesIndex compares testdata/README.md with the files.
func TestLaunchesIndex(t *testing.T) {
	var b strings.Builder
	b.WriteString(launchesHead)
	for _, file := range golden.Read(t, "testdata") {
		var pages []string
		for _, page := range strings.Fields(string(file.Section("documentation"))) {
			name := strings.TrimSuffix(strings.TrimPrefix(path.Base(page), "API_"), ".html")
			if !strings.HasPrefix(page, "https://") {
				t.Errorf("%s: the section documentation has %q, want URLs", file.Name(), page)
			}
			pages = append(pages, fmt.Sprintf("[%s](%s)", name, page))
		}
		if len(pages) == 0 {
			t.Errorf("%s has no section documentation with the URL of a page", file.Name())
		}
		fmt.Fprintf(&b, "| [%s](%s.txtar) | %s | %s |\n", file.Name(), file.Name(),
			strings.Join(strings.Fields(string(file.Comment)), " "), strings.Join(pages, ", "))
	}
	if *golden.Update {
		if err := os.WriteFile("testdata/README.md", []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile("testdata/README.md")
	if err != nil || string(have) != b.String() {
		t.Errorf("testdata/README.md is not the index of the files (go test -update writes it): %v", err)
	}
}

// TestLaunchesShowEveryField checks that each field of a class, except those by which it finds what the status lists, is
// set in a file.
func TestLaunchesShowEveryField(t *testing.T) {
	found := []string{"subnetSelectorTerms", "securityGroupSelectorTerms", "role", "instanceProfile"}
	shown := map[string]bool{}
	for _, file := range golden.Read(t, "testdata") {
		var class struct {
			Spec map[string]any `json:"spec"`
		}
		if err := yaml.Unmarshal(file.Section("nodeclass.yaml"), &class); err != nil {
			t.Fatal(err)
		}
		for field := range class.Spec {
			shown[field] = true
		}
	}
	fields := reflect.TypeFor[awsv1.EC2NodeClassSpec]()
	for i := range fields.NumField() {
		name, _, _ := strings.Cut(fields.Field(i).Tag.Get("json"), ",")
		if !shown[name] && !slices.Contains(found, name) {
			t.Errorf("no file of testdata shows the field spec.%s", name)
		}
	}
}
