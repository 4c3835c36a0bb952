package userdata

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const (
	nodeConfigGroup   = "node.eks.aws"
	nodeConfigVersion = nodeConfigGroup + "/v1alpha1"
	nodeConfigKind    = "NodeConfig"
)

// nodeConfig is the document that nodeadm reads (https://awslabs.github.io/amazon-eks-ami/nodeadm/doc/api/). Parts
// without a fixed schema, and parts that change often, have no fixed type here either.
type nodeConfig struct {
	APIVersion string             `json:"apiVersion"`
	Kind       string             `json:"kind"`
	Metadata   *metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec       nodeConfigSpec     `json:"spec"`
}

type nodeConfigSpec struct {
	Cluster      *clusterDetails    `json:"cluster,omitempty"`
	Containerd   *containerdOptions `json:"containerd,omitempty"`
	Instance     *instanceOptions   `json:"instance,omitempty"`
	Kubelet      *kubeletOptions    `json:"kubelet,omitempty"`
	FeatureGates map[string]bool    `json:"featureGates,omitempty"`
}

type clusterDetails struct {
	Name                 string `json:"name,omitempty"`
	APIServerEndpoint    string `json:"apiServerEndpoint,omitempty"`
	CertificateAuthority []byte `json:"certificateAuthority,omitempty"` // base64 when encoded
	CIDR                 string `json:"cidr,omitempty"`
	EnableOutpost        *bool  `json:"enableOutpost,omitempty"`
	ID                   string `json:"id,omitempty"`
}

type containerdOptions struct {
	Config          string                     `json:"config,omitempty"` // TOML
	BaseRuntimeSpec map[string]json.RawMessage `json:"baseRuntimeSpec,omitempty"`
}

type instanceOptions struct {
	LocalStorage *localStorage              `json:"localStorage,omitempty"`
	Environment  map[string]json.RawMessage `json:"environment,omitempty"`
	Network      map[string]json.RawMessage `json:"network,omitempty"`
}

type localStorage struct {
	Strategy       string   `json:"strategy,omitempty"`
	MountPath      string   `json:"mountPath,omitempty"`
	DisabledMounts []string `json:"disabledMounts,omitempty"`
}

type kubeletOptions struct {
	Config            map[string]json.RawMessage `json:"config,omitempty"`
	Flags             []string                   `json:"flags,omitempty"`
	MaxPodsExpression string                     `json:"maxPodsExpression,omitempty"`
}

// checkNodeConfig returns why nodeadm could not read a user's NodeConfig. nodeadm ignores unknown fields, so they are
// not an error (see Unknown).
func checkNodeConfig(text string) error {
	if documents(text) > 1 {
		return badNodeConfig("there is more than one YAML document, of which nodeadm would read the first", nil)
	}
	var named metav1.TypeMeta
	if err := yaml.Unmarshal([]byte(text), &named); err != nil {
		return badNodeConfig("the NodeConfig cannot be read", err)
	}
	if named.APIVersion != nodeConfigVersion || named.Kind != nodeConfigKind {
		return badNodeConfig(fmt.Sprintf("it is a YAML document of apiVersion %q and kind %q", named.APIVersion, named.Kind), nil)
	}
	fields, err := yaml.YAMLToJSONStrict([]byte(text)) // rejects duplicate fields
	if err != nil {
		return badNodeConfig("the NodeConfig cannot be read", fmt.Errorf("error converting YAML to JSON: %w", err))
	}
	var config nodeConfig
	if err := json.Unmarshal(fields, &config); err != nil {
		return badNodeConfig("the NodeConfig cannot be read", err)
	}
	return config.Spec.check()
}

// documents returns the number of YAML documents that contain more than comments.
func documents(text string) int {
	count, begun := 0, false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\n")
		switch {
		case line == "---":
			begun = false
		case line != "" && !strings.HasPrefix(line, "#") && !begun:
			count, begun = count+1, true
		}
	}
	return count
}

func (s nodeConfigSpec) check() error {
	if s.Containerd != nil {
		var ignored map[string]any
		if err := toml.Unmarshal([]byte(s.Containerd.Config), &ignored); err != nil {
			return badNodeConfig("spec.containerd.config of the NodeConfig is not TOML", err)
		}
	}
	if s.Instance != nil && s.Instance.LocalStorage != nil {
		if err := s.Instance.LocalStorage.check(); err != nil {
			return err
		}
	}
	if s.Kubelet == nil {
		return nil
	}
	for _, flag := range s.Kubelet.Flags {
		if !strings.HasPrefix(flag, "-") {
			return badNodeConfig(fmt.Sprintf("spec.kubelet.flags of the NodeConfig has %q, which is not a flag", flag), nil)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Kubelet.Config)) {
		if kind := kubeletField(name); kind != "" && !isKind(kind, s.Kubelet.Config[name]) {
			return badNodeConfig(fmt.Sprintf("spec.kubelet.config of the NodeConfig: %s: %s is not of type %s", name,
				s.Kubelet.Config[name], kind), nil)
		}
	}
	return nil
}

func (l *localStorage) check() error {
	if !slices.Contains([]string{"", "RAID0", "RAID10", "Mount"}, l.Strategy) {
		return badNodeConfig(fmt.Sprintf("spec.instance.localStorage.strategy of the NodeConfig is %q; RAID0, RAID10 and Mount are known",
			l.Strategy), nil)
	}
	for _, mount := range l.DisabledMounts {
		if mount != "Containerd" && mount != "PodLogs" {
			return badNodeConfig(fmt.Sprintf("spec.instance.localStorage.disabledMounts of the NodeConfig has %q; Containerd and PodLogs are known", mount), nil)
		}
	}
	return nil
}

func badNodeConfig(problem string, err error) error {
	return &InvalidError{Field: "spec.userData", Problem: problem, Err: err,
		Remedy: "use one document with apiVersion: node.eks.aws/v1alpha1 and kind: NodeConfig as nodeadm documents it, a text that begins with #! or #cloud-config, or a MIME document of such parts"}
}
