package userdata

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/internal/testing/awssim/kubelet"
)

func render(t *testing.T, r Request) string {
	t.Helper()
	text, err := Render(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Launch templates are identified by a hash of their contents, so the order of maps must have no effect.
func TestRenderIsDeterministic(t *testing.T) {
	for _, family := range []awsv1.Family{awsv1.FamilyAL2, awsv1.FamilyAL2023, awsv1.FamilyBottlerocket} {
		r := plainRequest(family)
		r.Kubelet = &awsv1.KubeletConfiguration{
			KubeReserved: map[string]string{"cpu": "1", "memory": "1Gi", "pid": "100", "ephemeral-storage": "1Gi"},
			EvictionHard: map[string]string{"memory.available": "1%", "nodefs.available": "2%", "imagefs.available": "3%"},
		}
		want := render(t, r)
		for range 20 {
			if diff := cmp.Diff(want, render(t, r)); diff != "" {
				t.Fatalf("%s (-first +later):\n%s", family, diff)
			}
		}
	}
}

func TestRenderLeavesTheRequestAlone(t *testing.T) {
	r := plainRequest(awsv1.FamilyAL2023)
	r.Kubelet = &awsv1.KubeletConfiguration{MaxPods: new(intstr.FromString("vcpus * 5")), KubeReserved: map[string]string{"cpu": "vcpus * 10"}}
	before, labels := r.Kubelet.DeepCopy(), len(r.Node.Labels)
	render(t, r)
	if diff := cmp.Diff(before, r.Kubelet); diff != "" || len(r.Node.Labels) != labels {
		t.Errorf("the request was modified (-before +after):\n%s", diff)
	}
}

// Editors on Windows end lines with CR LF, which breaks shell scripts and MIME headers.
func TestCarriageReturns(t *testing.T) {
	document := "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=x\n\n--x\nContent-Type: text/x-shellscript\n\n#!/bin/sh\necho a\n--x--\n"
	for _, test := range []struct {
		family awsv1.Family
		custom string
	}{
		{awsv1.FamilyAL2, "#!/bin/sh\necho a\n"}, {awsv1.FamilyAL2, document},
		{awsv1.FamilyAL2023, "#!/bin/sh\necho a\n"}, {awsv1.FamilyAL2023, document},
		{awsv1.FamilyAL2023, "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {}\n"},
		{awsv1.FamilyBottlerocket, "[settings.motd]\na = \"b\"\n"},
		{awsv1.FamilyWindows2022, "<powershell>\necho a\n</powershell>\n<persist>true</persist>\n"},
	} {
		r := plainRequest(test.family)
		r.Custom = test.custom
		want := render(t, r)
		r.Custom = "\r\n\r\n" + strings.ReplaceAll(test.custom, "\n", "\r\n")
		if diff := cmp.Diff(want, render(t, r)); diff != "" {
			t.Errorf("%s (-LF +CR LF):\n%s", test.family, diff)
		}
		r.Custom = "\ufeff" + test.custom
		if diff := cmp.Diff(want, render(t, r)); diff != "" {
			t.Errorf("%s (-plain +with a byte order mark):\n%s", test.family, diff)
		}
	}
}

func TestSize(t *testing.T) {
	for _, family := range []awsv1.Family{awsv1.FamilyBottlerocket, awsv1.FamilyCustom, awsv1.FamilyWindows2025} { // the others compress
		r := plainRequest(family)
		r.Custom = "#"
		empty := len(render(t, r)) - 1
		if family == awsv1.FamilyBottlerocket { // comments are not preserved
			r.Custom = `a = ""`
			empty = len(render(t, r))
			r.Custom = `a = "` + strings.Repeat("x", Limit-empty) + `"`
		} else {
			r.Custom = "#" + strings.Repeat("x", Limit-empty-1)
		}
		if got := len(render(t, r)); got != Limit {
			t.Errorf("%s: %d bytes, want %d", family, got, Limit)
		}
		r.Custom = strings.Replace(r.Custom, "x", "xx", 1)
		_, err := Render(r)
		var size *SizeError
		switch {
		case !errors.As(err, &size):
			t.Errorf("%s: error is %v, not size", family, err)
		case size.Size != Limit+1:
			t.Errorf("%s: size.Size is %v, want %v", family, size.Size, Limit+1)
		case !strings.HasPrefix(err.Error(), "spec.userData: "):
			t.Errorf("%s: err.Error() is %q, want the prefix %q", family, err.Error(), "spec.userData: ")
		}
	}
}

// User data that EC2 accepts stays as it is, byte for byte. Longer data of AL2 and AL2023 is compressed, always to the
// same bytes, and joins after decompression. What is too long even then is refused with both sizes.
func TestCompression(t *testing.T) {
	for _, family := range []awsv1.Family{awsv1.FamilyAL2, awsv1.FamilyAL2023} {
		r := plainRequest(family)
		r.Custom = "#!/bin/sh\n"
		empty := len(render(t, r))
		r.Custom += "#" + incompressible(Limit-empty-1)
		text := render(t, r)
		if len(text) != Limit || !strings.HasPrefix(text, "MIME-Version") {
			t.Errorf("%s: %d bytes that begin with %q, want %d bytes of MIME", family, len(text), text[:8], Limit)
		}
		r.Custom += "x"
		data := []byte(render(t, r))
		if again := render(t, r); string(data) != again {
			t.Errorf("%s: compressed to other bytes the second time", family)
		}
		reader, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			t.Fatalf("%s: %d bytes are not compressed: %v", family, len(data), err)
		}
		if !reader.ModTime.IsZero() || reader.Name != "" {
			t.Errorf("%s: the header has the time %v and the name %q", family, reader.ModTime, reader.Name)
		}
		plain, err := io.ReadAll(reader)
		if err != nil || len(plain) != Limit+1 || len(data) >= Limit {
			t.Errorf("%s: %d bytes, decompressed %d, want %d: %v", family, len(data), len(plain), Limit+1, err)
		}
		if !strings.Contains(string(plain), r.Custom) {
			t.Errorf("%s: the script is not in the decompressed user data", family)
		}
		joins(t, r, plain)
		config, err := kubelet.Read(strings.ToLower(string(family)), data) // the simulated image shares no code with this package
		if err != nil || config.MaxPods != r.Node.MaxPods {
			t.Errorf("%s: the simulated image reads maxPods %d, %v", family, config.MaxPods, err)
		}
		for _, n := range []int{2 * Limit, mostCompressed} { // at most mostCompressed bytes are compressed
			r.Custom = "#" + incompressible(n)
			var size *SizeError
			if _, err = Render(r); !errors.As(err, &size) || size.Size <= n || (n < mostCompressed) != (size.Compressed < size.Size) ||
				size.Compressed <= Limit {
				t.Errorf("%s with %d bytes: %v", family, n, err)
			}
		}
	}
}

func TestNear(t *testing.T) {
	long, short := make([]byte, NearLimit), make([]byte, NearLimit-1)
	packed := append(slices.Clone(gzipMagic), long...)
	for _, test := range []struct {
		family awsv1.Family
		data   []byte
		want   bool
	}{
		{awsv1.FamilyCustom, long, true}, {awsv1.FamilyCustom, short, false}, {awsv1.FamilyBottlerocket, long, true},
		{awsv1.FamilyAL2023, long, false}, {awsv1.FamilyAL2023, packed, true}, {awsv1.FamilyAL2, packed[:100], false},
	} {
		if got := Near(test.family, test.data); got != test.want {
			t.Errorf("%d bytes of %s are near the limit: %t, want %t", len(test.data), test.family, got, test.want)
		}
	}
}

// incompressible returns n characters, the same each time, of which compression saves less than a half.
func incompressible(n int) string {
	random := rand.New(rand.NewPCG(1, 2))
	text := make([]byte, n)
	for i := range text {
		text[i] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[random.IntN(64)]
	}
	return string(text)
}

func TestErrors(t *testing.T) {
	r := plainRequest(awsv1.FamilyAL2)
	r.Custom = "Content-Type: multipart/mixed; boundary=x\n\n--x\n\na"
	_, err := Render(r)
	var invalid *InvalidError
	switch {
	case !errors.As(err, &invalid):
		t.Errorf("error is %v, not invalid", err)
	case invalid.Field != "spec.userData":
		t.Errorf(`invalid.Field is %v, want "spec.userData"`, invalid.Field)
	case !errors.Is(err, io.ErrUnexpectedEOF):
		t.Errorf("error is %v, not io.ErrUnexpectedEOF", err)
	}
}

func TestClusterFacts(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*Cluster)
		family awsv1.Family
		want   string // part of the error; empty: none
	}{
		{"no name", func(c *Cluster) { c.Name = "" }, awsv1.FamilyAL2, "--cluster-name"},
		{"no endpoint", func(c *Cluster) { c.Endpoint = "" }, awsv1.FamilyBottlerocket, "--cluster-endpoint"},
		{"a CA that is not base64", func(c *Cluster) { c.CABundle = "-----BEGIN CERTIFICATE-----" }, awsv1.FamilyAL2, "base64"},
		{"AL2 finds the CA itself", func(c *Cluster) { c.CABundle = "" }, awsv1.FamilyAL2, ""},
		{"AL2023 does not", func(c *Cluster) { c.CABundle = "" }, awsv1.FamilyAL2023, "CA bundle"},
		{"Bottlerocket does not", func(c *Cluster) { c.CABundle = "" }, awsv1.FamilyBottlerocket, "CA bundle"},
		{"a DNS name for an address", func(c *Cluster) { c.DNS = "kube-dns" }, awsv1.FamilyAL2, "DNS"},
		{"a CIDR that is none", func(c *Cluster) { c.ServiceCIDR = "10.0.0.0" }, awsv1.FamilyAL2023, "CIDR"},
		{"only AL2023 needs the CIDR", func(c *Cluster) { c.ServiceCIDR = "" }, awsv1.FamilyBottlerocket, ""},
		{"Custom needs nothing", func(c *Cluster) { *c = Cluster{} }, awsv1.FamilyCustom, ""},
	} {
		r := plainRequest(test.family)
		test.change(&r.Cluster)
		_, err := Render(r)
		switch got := err == nil; {
		case got != (test.want == ""):
			t.Errorf("%s: got is %v, want %v, want one with %q", test.name, got, (test.want == ""), test.want)
		case err != nil && !strings.Contains(err.Error(), test.want):
			t.Errorf("%s: err != nil && !strings.Contains(err.Error(), test.want), error is %v, want one with %q", test.name, err, test.want)
		}
	}
}

// nodeadm reads compressed NodeConfigs. A field of a wrong type in one is detected, and an unknown field is reported.
func TestCompressedNodeConfig(t *testing.T) {
	for _, test := range []struct {
		config, want string
		unknown      []string
	}{
		{"apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {}\n", "", nil},
		{"apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspecs: {}\n", "", []string{"specs"}},
		{"apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {kubelet: {flags: none}}\n", "cannot unmarshal string", nil},
	} {
		var zipped bytes.Buffer
		writer := gzip.NewWriter(&zipped)
		if _, err := writer.Write([]byte(test.config)); err != nil {
			t.Fatal(err)
		}
		if err := writer.Close(); err != nil {
			t.Fatal(err)
		}
		for name, body := range map[string]string{
			"gzip in base64":   "\n" + base64.StdEncoding.EncodeToString(zipped.Bytes()),
			"quoted-printable": "Content-Transfer-Encoding: quoted-printable\n\n" + strings.ReplaceAll(test.config, ":", "=3A"),
		} {
			r := plainRequest(awsv1.FamilyAL2023)
			r.Custom = "Content-Type: multipart/mixed; boundary=x\n\n--x\nContent-Type: application/node.eks.aws\n" + body + "\n--x--"
			_, err := Render(r)
			switch got := err == nil; {
			case got != (test.want == ""):
				t.Errorf("%s: got is %v, want %v, want %q", name, got, (test.want == ""), test.want)
			case err != nil && !strings.Contains(err.Error(), test.want):
				t.Errorf("%s: err != nil && !strings.Contains(err.Error(), test.want), error is %v, want %q", name, err, test.want)
			}
			if unknown := Unknown(r); !slices.Equal(unknown, test.unknown) {
				t.Errorf("%s: unknown fields %v, want %v", name, unknown, test.unknown)
			}
		}
	}
}

func TestFromVersion(t *testing.T) {
	for name, want := range map[string]bool{
		"bottlerocket-aws-k8s-1.34-x86_64-v1.46.0-aa11bb22":         true,
		"bottlerocket-aws-k8s-1.34-nvidia-aarch64-v1.45.9-aa11bb22": false,
		"bottlerocket-aws-k8s-1.34-x86_64-v2.0.0-aa11bb22":          true,
		"v1.46.0": true, "1.46.0": true, "1.100.3": true, "v1.9.0": false, "0.99.0": false,
		"latest": false, "": false, "my-image-1.50": false,
	} {
		if got := fromVersion(name, 1, 46); got != want {
			t.Errorf("%q is 1.46 or later: %t, want %t", name, got, want)
		}
	}
}

func TestCheckKubelet(t *testing.T) {
	other := func(name, value string) map[string]apiextensionsv1.JSON {
		return map[string]apiextensionsv1.JSON{name: {Raw: []byte(value)}}
	}
	invalid, unsupported := awsv1.ReasonInvalidKubeletConfiguration, awsv1.ReasonUnsupportedKubeletConfiguration
	for _, test := range []struct {
		name    string
		family  awsv1.Family
		kubelet *awsv1.KubeletConfiguration
		reason  string // empty: accepted
		want    string // part of the only problem
	}{
		{"none", awsv1.FamilyAL2, nil, "", ""},
		{"nothing", awsv1.FamilyAL2, &awsv1.KubeletConfiguration{}, "", ""},
		{"an address", awsv1.FamilyAL2, &awsv1.KubeletConfiguration{ClusterDNS: []string{"fd00::a"}}, "", ""},
		{"no address", awsv1.FamilyAL2023, &awsv1.KubeletConfiguration{ClusterDNS: []string{"10.0.0"}}, invalid, "clusterDNS"},
		{"negative pods", awsv1.FamilyAL2, &awsv1.KubeletConfiguration{MaxPods: new(intstr.FromInt32(-1))}, invalid, "maxPods"},
		{"negative pods per core", awsv1.FamilyAL2, &awsv1.KubeletConfiguration{PodsPerCore: new(int32(-1))}, invalid, "podsPerCore"},
		{"an expression", awsv1.FamilyAL2, &awsv1.KubeletConfiguration{KubeReserved: map[string]string{"cpu": "vcpus"}}, "", ""},
		{"a reserved key", awsv1.FamilyAL2, &awsv1.KubeletConfiguration{KubeReserved: map[string]string{"pods": "5"}}, invalid, "kubeReserved"},
		{"a negative amount", awsv1.FamilyAL2, &awsv1.KubeletConfiguration{SystemReserved: map[string]string{"cpu": "-5"}},
			invalid, "systemReserved[cpu]"},
		{"a signal", awsv1.FamilyAL2, &awsv1.KubeletConfiguration{EvictionHard: map[string]string{"memory": "5%"}}, invalid, "evictionHard"},
		{"percentages", awsv1.FamilyAL2, &awsv1.KubeletConfiguration{EvictionHard: map[string]string{"memory.available": "0%",
			"nodefs.available": "100%", "pid.available": "7.5%"}}, "", ""},
		{"too much", awsv1.FamilyAL2, &awsv1.KubeletConfiguration{EvictionHard: map[string]string{"memory.available": "101%"}},
			invalid, "evictionHard[memory.available]"},
		{"too little", awsv1.FamilyAL2, &awsv1.KubeletConfiguration{EvictionHard: map[string]string{"memory.available": "-5Mi"}},
			invalid, "evictionHard[memory.available]"},
		{"no amount", awsv1.FamilyAL2, &awsv1.KubeletConfiguration{EvictionHard: map[string]string{"memory.available": "NaN%"}},
			invalid, "evictionHard[memory.available]"},
		{"soft without a time", awsv1.FamilyAL2, &awsv1.KubeletConfiguration{EvictionSoft: map[string]string{"pid.available": "5%"}},
			invalid, "evictionSoft: pid.available"},
		{"a time without soft", awsv1.FamilyAL2, &awsv1.KubeletConfiguration{EvictionSoftGracePeriod: map[string]string{"pid.available": "1m"}}, invalid, "evictionSoftGracePeriod: pid.available"},
		{"a negative time", awsv1.FamilyAL2, &awsv1.KubeletConfiguration{EvictionSoft: map[string]string{"pid.available": "5%"},
			EvictionSoftGracePeriod: map[string]string{"pid.available": "-1s"}}, invalid, "or is negative"},
		{"no time", awsv1.FamilyAL2, &awsv1.KubeletConfiguration{EvictionSoft: map[string]string{"pid.available": "5%"},
			EvictionSoftGracePeriod: map[string]string{"pid.available": "soon"}}, invalid, "not a duration"},
		{"a named field of another type", awsv1.FamilyAL2, &awsv1.KubeletConfiguration{Other: other("podsPerCore", `"many"`)},
			invalid, "of type integer"},
		{"image percentage", awsv1.FamilyAL2, &awsv1.KubeletConfiguration{ImageGCHighThresholdPercent: new(int32(101))},
			invalid, "imageGCHighThresholdPercent"},
		{"image percentages", awsv1.FamilyAL2, &awsv1.KubeletConfiguration{ImageGCHighThresholdPercent: new(int32(50)),
			ImageGCLowThresholdPercent: new(int32(50))}, invalid, "not greater"},
		{"a named field out of range", awsv1.FamilyAL2023, &awsv1.KubeletConfiguration{Other: other("podsPerCore", `99999999999`)},
			invalid, "range"},
		{"no texts", awsv1.FamilyAL2023, &awsv1.KubeletConfiguration{Other: other("tlsCipherSuites", `[5]`)}, invalid, "of type texts"},
		{"no strings", awsv1.FamilyAL2023, &awsv1.KubeletConfiguration{Other: other("qosReserved", `{"memory": 5}`)}, invalid, "of type strings"},
		{"another field", awsv1.FamilyAL2023, &awsv1.KubeletConfiguration{Other: other("seccompDefault", "true")}, "", ""},
		{"a field of null", awsv1.FamilyAL2023, &awsv1.KubeletConfiguration{Other: map[string]apiextensionsv1.JSON{"seccompDefault": {}}},
			"", ""},
		{"a duration", awsv1.FamilyAL2023, &awsv1.KubeletConfiguration{Other: other("shutdownGracePeriod", `"30s"`)}, "", ""},
		{"a bad duration", awsv1.FamilyAL2023, &awsv1.KubeletConfiguration{Other: other("shutdownGracePeriod", `"soon"`)},
			invalid, "of type duration"},
		{"a map", awsv1.FamilyAL2023, &awsv1.KubeletConfiguration{Other: other("logging", `{"verbosity": 3}`)}, "", ""},
		{"no map", awsv1.FamilyAL2023, &awsv1.KubeletConfiguration{Other: other("logging", `3`)}, invalid, "of type map"},
		{"no integer", awsv1.FamilyAL2023, &awsv1.KubeletConfiguration{Other: other("podPidsLimit", `1.5`)}, invalid, "of type integer"},
		{"a misspelled field", awsv1.FamilyAL2023, &awsv1.KubeletConfiguration{Other: other("seccompdefault", "true")}, invalid, "not a field"},
		{"a misspelled field for Custom", awsv1.FamilyCustom, &awsv1.KubeletConfiguration{Other: other("seccompdefault", "true")},
			invalid, "not a field"},
		{"taints", awsv1.FamilyAL2023, &awsv1.KubeletConfiguration{Other: other("registerWithTaints", "[]")}, invalid, "NodePool"},
		{"another field for AL2", awsv1.FamilyAL2, &awsv1.KubeletConfiguration{Other: other("seccompDefault", "true")},
			unsupported, "seccompDefault"},
		{"another field for Windows", awsv1.FamilyWindows2022, &awsv1.KubeletConfiguration{Other: other("seccompDefault", "true")},
			unsupported, "seccompDefault"},
		{"another field for Custom", awsv1.FamilyCustom, &awsv1.KubeletConfiguration{Other: other("seccompDefault", "true")}, "", ""},
		{"two addresses", awsv1.FamilyAL2023, &awsv1.KubeletConfiguration{ClusterDNS: []string{"10.0.0.1", "10.0.0.2"}}, "", ""},
		{"two addresses for Bottlerocket", awsv1.FamilyBottlerocket,
			&awsv1.KubeletConfiguration{ClusterDNS: []string{"10.0.0.1", "10.0.0.2"}}, unsupported, "clusterDNS"},
		{"pods per core", awsv1.FamilyAL2, &awsv1.KubeletConfiguration{PodsPerCore: new(int32(1))}, "", ""},
		{"pods per core for Bottlerocket", awsv1.FamilyBottlerocket, &awsv1.KubeletConfiguration{PodsPerCore: new(int32(1))},
			unsupported, "podsPerCore"},
	} {
		err := CheckKubelet(test.family, test.kubelet)
		var kubelet *KubeletError
		switch {
		case test.reason == "":
			if err != nil {
				t.Errorf("%s: error is %v, want none", test.name, err)
			}
		case !errors.As(err, &kubelet) || kubelet.Reason != test.reason || len(kubelet.Problems) != 1 || !strings.Contains(kubelet.Problems[0], test.want):
			t.Errorf("%s: error is %v, want %s with one problem that contains %q", test.name, err, test.reason, test.want)
		}
	}
}

// The table of the kubelet's fields has all fields of the API type.
func TestKubeletFieldsHaveTheNamedOnes(t *testing.T) {
	full := awsv1.KubeletConfiguration{ClusterDNS: []string{"10.0.0.1"}, MaxPods: new(intstr.FromInt32(1)), PodsPerCore: new(int32(1)),
		SystemReserved: map[string]string{"cpu": "1"}, KubeReserved: map[string]string{"cpu": "1"},
		EvictionHard: map[string]string{"pid.available": "1"},
		EvictionSoft: map[string]string{"pid.available": "1"}, EvictionSoftGracePeriod: map[string]string{"pid.available": "1m"},
		EvictionMaxPodGracePeriod: new(int32(1)), ImageGCHighThresholdPercent: new(int32(1)), ImageGCLowThresholdPercent: new(int32(1)),
		CPUCFSQuota: new(true)}
	config, err := Request{Kubelet: &full}.kubeletConfig()
	if err != nil {
		t.Fatal(err)
	}
	if len(config) != 13 { // includes registerWithTaints
		t.Errorf("the configuration has %d fields, want 13", len(config))
	}
	for name, value := range config {
		if problem := checkKubeletField(name, value); problem != "" {
			t.Error(problem)
		}
	}
}

// For every input, the result is an error with the field and a remedy, or user data with which the planned node joins.
func FuzzRender(f *testing.F) {
	for _, seed := range []string{"", "#!/bin/sh", "#cloud-config\na: b", "echo",
		"MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"//\"\n\n--//\n\na\n--//--",
		"Content-Type: text/plain\n\na", "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {kubelet: {config: {maxPods: 5}}}",
		"[settings.kubernetes]\nmax-pods = 5",
		"[settings.kubernetes.node-labels]\na = \"b\"", "--//\n--///"} {
		f.Add(byte(0), seed)
		f.Add(byte(1), seed)
		f.Add(byte(2), seed)
	}
	families := []awsv1.Family{awsv1.FamilyAL2, awsv1.FamilyAL2023, awsv1.FamilyBottlerocket}
	f.Fuzz(func(t *testing.T, family byte, custom string) {
		r := plainRequest(families[int(family)%len(families)])
		r.Custom = custom
		text, err := Render(r)
		if err != nil {
			checkError(t, err)
			return
		}
		joins(t, r, text)
		again, err := Render(r)
		if err != nil || !bytes.Equal(text, again) {
			t.Errorf("the second rendering: %v\n%s", err, again)
		}
	})
}
