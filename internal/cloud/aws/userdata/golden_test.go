package userdata

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/internal/testing/golden"
)

var testCA = base64.StdEncoding.EncodeToString([]byte("-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n"))

// fixture holds the differences from the plain request, in YAML.
type fixture struct {
	Family        awsv1.Family                `json:"family"`
	Kubelet       *awsv1.KubeletConfiguration `json:"kubelet"`
	InstanceStore awsv1.InstanceStorePolicy   `json:"instanceStore"`
	ImageName     string                      `json:"imageName"`
	DNS           *string                     `json:"dns"`
	ServiceCIDR   *string                     `json:"serviceCIDR"`
	ClusterName   string                      `json:"clusterName"`
	Labels        map[string]string           `json:"labels"`
	Taints        []corev1.Taint              `json:"taints"`
	StartupTaints []corev1.Taint              `json:"startupTaints"`
	MaxPods       int64                       `json:"maxPods"`
}

func plainRequest(family awsv1.Family) Request {
	return Request{
		Family: family,
		Cluster: Cluster{Name: "test", Endpoint: "https://0123.gr7.eu-west-1.eks.amazonaws.com", CABundle: testCA,
			ServiceCIDR: "10.100.0.0/16", DNS: "10.100.0.10"},
		Node: Node{Labels: map[string]string{"karpenter.sh/nodepool": "default", "karpenter.sh/capacity-type": "spot",
			"topology.kubernetes.io/zone": "eu-west-1a"}, MaxPods: 29},
	}
}

func (f fixture) request(custom string) Request {
	r := plainRequest(f.Family)
	r.Custom, r.Kubelet, r.InstanceStore, r.ImageName = custom, f.Kubelet, f.InstanceStore, f.ImageName
	r.Node.Taints, r.Node.StartupTaints = f.Taints, f.StartupTaints
	for key, value := range f.Labels {
		r.Node.Labels[key] = value
	}
	if f.DNS != nil {
		r.Cluster.DNS = *f.DNS
	}
	if f.ServiceCIDR != nil {
		r.Cluster.ServiceCIDR = *f.ServiceCIDR
	}
	if f.ClusterName != "" {
		r.Cluster.Name = f.ClusterName
	}
	if f.MaxPods != 0 {
		r.Node.MaxPods = f.MaxPods
	}
	return r
}

// Each file is one request: a sentence that describes its purpose, the differences from the plain request, the user's
// own data, and then either the user data of the machine or the error.
func TestGolden(t *testing.T) { golden.Each(t, rendered) }

func rendered(t *testing.T, file *golden.File) {
	var f fixture
	var custom string
	inputs := &txtar.Archive{Comment: file.Comment}
	for _, section := range file.Files {
		switch section.Name {
		case "request.yaml":
			if err := yaml.UnmarshalStrict(section.Data, &f); err != nil {
				t.Fatal(err)
			}
		case "userData":
			custom = string(section.Data)
		default:
			continue
		}
		inputs.Files = append(inputs.Files, section)
	}
	if unknown := Unknown(f.request(custom)); len(unknown) > 0 {
		inputs.Files = append(inputs.Files, txtar.File{Name: "unknown", Data: []byte(strings.Join(unknown, "\n") + "\n")})
	}
	result := txtar.File{Name: "want"}
	text, err := Render(f.request(custom))
	if result.Data = text; err != nil {
		result = txtar.File{Name: "error", Data: []byte(err.Error() + "\n")}
	}
	inputs.Files = append(inputs.Files, result)
	file.CheckAll(t, inputs)
	if err == nil && f.Family != awsv1.FamilyCustom {
		joins(t, f.request(custom), text)
	}
	checkError(t, err)
}

// checkError checks that an error has a field or a setting and a valid form.
func checkError(t *testing.T, err error) {
	t.Helper()
	var invalid *InvalidError
	if errors.As(err, &invalid) {
		switch {
		case !strings.HasPrefix(invalid.Field, "spec."):
			t.Errorf("the error lacks the field, the problem or the remedy: invalid.Field is %q, want the prefix %q", invalid.Field, "spec.")
		case invalid.Problem == "":
			t.Errorf(`the error lacks the field, the problem or the remedy: invalid.Problem is "", %+v`, invalid)
		case invalid.Remedy == "":
			t.Errorf(`the error lacks the field, the problem or the remedy: invalid.Remedy is "", %+v`, invalid)
		}
	}
}
