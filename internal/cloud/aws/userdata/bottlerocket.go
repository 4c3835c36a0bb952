package userdata

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
)

// bottlerocket returns the user's settings as TOML, overridden by the required ones
// (https://bottlerocket.dev/en/os/latest/#/api/settings/).
func (r Request) bottlerocket() ([]byte, error) {
	if r.Cluster.CABundle == "" {
		return nil, fmt.Errorf("user data for Bottlerocket needs the CA bundle of cluster %s", r.Cluster.Name)
	}
	document, err := readTOML(strings.TrimPrefix(r.Custom, byteOrderMark))
	if err != nil {
		return nil, err
	}
	settings, err := table(document, "settings", "settings")
	if err != nil {
		return nil, err
	}
	kubernetes, err := table(settings, "kubernetes", "settings.kubernetes")
	if err != nil {
		return nil, err
	}
	if err := r.setKubernetes(kubernetes); err != nil {
		return nil, err
	}
	setKubelet(kubernetes, r.Kubelet)
	if r.InstanceStore == awsv1.InstanceStorePolicyRAID0 {
		commands, err := table(settings, "bootstrap-commands", "settings.bootstrap-commands")
		if err != nil {
			return nil, err
		}
		commands["000-mount-instance-storage"] = mountInstanceStorage(r.ImageName)
	}
	text, err := toml.Marshal(document)
	if err != nil {
		return nil, fmt.Errorf("writing Bottlerocket settings: %w", err)
	}
	return text, nil
}

// kubernetesSettings are the known settings with Bottlerocket's types. Unknown settings are passed on, because
// Bottlerocket reports errors in them.
type kubernetesSettings struct {
	Settings struct {
		Kubernetes struct {
			APIServer                   string              `toml:"api-server"`
			ClusterCertificate          string              `toml:"cluster-certificate"`
			ClusterName                 string              `toml:"cluster-name"`
			ClusterDomain               string              `toml:"cluster-domain"`
			NodeLabels                  map[string]string   `toml:"node-labels"`
			NodeTaints                  map[string][]string `toml:"node-taints"`
			MaxPods                     *int64              `toml:"max-pods"`
			SystemReserved              map[string]string   `toml:"system-reserved"`
			KubeReserved                map[string]string   `toml:"kube-reserved"`
			EvictionHard                map[string]string   `toml:"eviction-hard"`
			EvictionSoft                map[string]string   `toml:"eviction-soft"`
			EvictionSoftGracePeriod     map[string]string   `toml:"eviction-soft-grace-period"`
			EvictionMaxPodGracePeriod   *int64              `toml:"eviction-max-pod-grace-period"`
			CPUCFSQuotaEnforced         *bool               `toml:"cpu-cfs-quota-enforced"`
			AllowedUnsafeSysctls        []string            `toml:"allowed-unsafe-sysctls"`
			ServerTLSBootstrap          *bool               `toml:"server-tls-bootstrap"`
			CloudProvider               *string             `toml:"cloud-provider"`
			RegistryQPS                 *int64              `toml:"registry-qps"`
			RegistryBurst               *int64              `toml:"registry-burst"`
			EventQPS                    *int64              `toml:"event-qps"`
			EventBurst                  *int64              `toml:"event-burst"`
			KubeAPIQPS                  *int64              `toml:"kube-api-qps"`
			KubeAPIBurst                *int64              `toml:"kube-api-burst"`
			ContainerLogMaxSize         *string             `toml:"container-log-max-size"`
			ContainerLogMaxFiles        *int64              `toml:"container-log-max-files"`
			CPUManagerPolicy            *string             `toml:"cpu-manager-policy"`
			CPUManagerPolicyOptions     []string            `toml:"cpu-manager-policy-options"`
			CPUManagerReconcilePeriod   *string             `toml:"cpu-manager-reconcile-period"`
			MemoryManagerPolicy         *string             `toml:"memory-manager-policy"`
			TopologyManagerScope        *string             `toml:"topology-manager-scope"`
			TopologyManagerPolicy       *string             `toml:"topology-manager-policy"`
			ShutdownGracePeriod         *string             `toml:"shutdown-grace-period"`
			ShutdownGracePeriodCritical *string             `toml:"shutdown-grace-period-for-critical-pods"`
			SeccompDefault              *bool               `toml:"seccomp-default"`
			PodPidsLimit                *int64              `toml:"pod-pids-limit"`
			CredentialProviders         map[string]any      `toml:"credential-providers"`
			StaticPods                  map[string]any      `toml:"static-pods"`
		} `toml:"kubernetes"`
	} `toml:"settings"`
}

func readTOML(text string) (map[string]any, error) {
	document := map[string]any{}
	if err := toml.Unmarshal([]byte(text), &document); err != nil {
		return nil, badTOML("it is not TOML"+position(err), err)
	}
	var typed kubernetesSettings
	if err := toml.Unmarshal([]byte(text), &typed); err != nil {
		// The library's error is about Go types.
		return nil, badTOML("a setting has another type than Bottlerocket gives it"+position(err), nil)
	}
	return document, nil
}

// position returns the position of an error if it is known: the setting, the line and the column.
func position(err error) string {
	var at *toml.DecodeError
	if !errors.As(err, &at) {
		return ""
	}
	line, column := at.Position()
	where := fmt.Sprintf("line %d, column %d", line, column)
	if key := at.Key(); len(key) > 0 {
		where = strings.Join(key, ".") + ", " + where
	}
	return " (" + where + ")"
}

func badTOML(problem string, err error) error {
	return &InvalidError{Field: "spec.userData", Problem: problem, Err: err,
		Remedy: "user data of Bottlerocket is TOML, for example the line [settings.kernel] and, below it, lockdown = \"integrity\""}
}

// table returns the sub-table of the given name, and creates it if there is none.
func table(parent map[string]any, name, path string) (map[string]any, error) {
	switch child := parent[name].(type) {
	case nil:
		created := map[string]any{}
		parent[name] = created
		return created, nil
	case map[string]any:
		return child, nil
	default:
		return nil, badTOML(fmt.Sprintf("%s is a %T and not a table", path, child), nil)
	}
}

// setKubernetes sets what every node needs. Labels of the user are kept, unless a required label has the same key.
// Taints of the user are replaced, because pods are planned with those of the pool.
func (r Request) setKubernetes(kubernetes map[string]any) error {
	kubernetes["api-server"] = r.Cluster.Endpoint
	kubernetes["cluster-certificate"] = r.Cluster.CABundle
	kubernetes["cluster-name"] = r.Cluster.Name
	kubernetes["max-pods"] = r.Node.MaxPods
	labels, err := table(kubernetes, "node-labels", "settings.kubernetes.node-labels")
	if err != nil {
		return err
	}
	for key, value := range r.labels() {
		labels[key] = value
	}
	taints := map[string][]string{}
	for _, taint := range r.taints() {
		taints[taint.Key] = append(taints[taint.Key], taint.Value+":"+string(taint.Effect))
	}
	kubernetes["node-taints"] = taints
	if dns := r.dns(); len(dns) > 0 {
		kubernetes["cluster-dns-ip"] = dns[0]
	}
	return nil
}

// setKubelet sets exactly the fields of the class's kubelet configuration.
func setKubelet(kubernetes map[string]any, k *awsv1.KubeletConfiguration) {
	if k == nil {
		return
	}
	entries := func(name string, values map[string]string) {
		if len(values) > 0 {
			kubernetes[name] = values
		}
	}
	entries("system-reserved", amounts(k.SystemReserved))
	entries("kube-reserved", amounts(k.KubeReserved))
	entries("eviction-hard", k.EvictionHard)
	entries("eviction-soft", k.EvictionSoft)
	entries("eviction-soft-grace-period", k.EvictionSoftGracePeriod)
	if k.EvictionMaxPodGracePeriod != nil {
		kubernetes["eviction-max-pod-grace-period"] = int64(*k.EvictionMaxPodGracePeriod)
	}
	// These two are strings in Bottlerocket.
	if k.ImageGCHighThresholdPercent != nil {
		kubernetes["image-gc-high-threshold-percent"] = strconv.Itoa(int(*k.ImageGCHighThresholdPercent))
	}
	if k.ImageGCLowThresholdPercent != nil {
		kubernetes["image-gc-low-threshold-percent"] = strconv.Itoa(int(*k.ImageGCLowThresholdPercent))
	}
	if k.CPUCFSQuota != nil {
		kubernetes["cpu-cfs-quota-enforced"] = *k.CPUCFSQuota
	}
}

// mountInstanceStorage returns the commands that combine the instance's own disks and move the data of containers and
// pods there. From 1.46.0 on, Bottlerocket knows these directories; for older and unknown versions they are listed.
func mountInstanceStorage(imageName string) map[string]any {
	bind := []string{"apiclient", "ephemeral-storage", "bind"}
	if !fromVersion(imageName, 1, 46) {
		bind = append(bind, "--dirs", "/var/lib/containerd", "/var/lib/kubelet", "/var/log/pods")
	}
	return map[string]any{
		"commands":  [][]string{{"apiclient", "ephemeral-storage", "init"}, bind},
		"mode":      "always",
		"essential": true,
	}
}

// bottlerocketVersion matches the version in names such as bottlerocket-aws-k8s-1.34-x86_64-v1.46.0-aa11bb22 and in
// versions of aliases such as v1.46.0 and 1.46.0.
var bottlerocketVersion = regexp.MustCompile(`(?:^v?|-v)([0-9]{1,6})\.([0-9]{1,6})\.[0-9]+`)

func fromVersion(imageName string, major, minor int) bool {
	found := bottlerocketVersion.FindStringSubmatch(imageName)
	if found == nil {
		return false
	}
	gotMajor, _ := strconv.Atoi(found[1]) // the pattern matches digits only
	gotMinor, _ := strconv.Atoi(found[2])
	return gotMajor > major || gotMajor == major && gotMinor >= minor
}
