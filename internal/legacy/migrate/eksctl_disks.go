package migrate

import (
	"strconv"

	"go.yaml.in/yaml/v3"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
)

// podsDevice contains the device whose size is the ephemeral storage of a node, unless one has rootVolume.
var podsDevice = map[awsv1.Family]string{
	awsv1.FamilyAL2: "/dev/xvda", awsv1.FamilyAL2023: "/dev/xvda", awsv1.FamilyBottlerocket: "/dev/xvdb",
	awsv1.FamilyWindows2019: "/dev/sda1", awsv1.FamilyWindows2022: "/dev/sda1", awsv1.FamilyWindows2025: "/dev/sda1",
}

// disks sets the root volume, 80 GiB of gp3 by default, and the additional volumes.
func (e *eksctlGroup) disks(f family) {
	if e.field("launchTemplate") != nil { // it defines the disks; another note reports it
		return
	}
	device := f.device
	if name := text(e.field("volumeName")); name != "" {
		device = name
	}
	list := sequence(disk(e.node, device, 80))
	if f.name == awsv1.FamilyBottlerocket && device == "/dev/xvdb" && e.isTrue("volumeEncrypted") {
		system := disk(e.node, "/dev/xvda", 0)
		set(system, scalar("4Gi"), "ebs", "volumeSize")
		list.Content = append([]*yaml.Node{system}, list.Content...)
	}
	for n, more := range members(e.field("additionalVolumes")) {
		name := text(at(more, "volumeName"))
		if name == "" {
			e.remark(Impossible, "additionalVolumes["+itoa(n)+"]", "requires a volumeName such as /dev/xvdc; omitted")
			continue
		}
		list.Content = append(list.Content, disk(more, name, 80))
	}
	if device != podsDevice[f.name] {
		set(list.Content[0], truth(true), "rootVolume")
	}
	set(e.class, list, "blockDeviceMappings")
}

// disk returns the block device mapping of a volume. gibibytes is its default size, 0 for one that is set later.
func disk(from *yaml.Node, device string, gibibytes int) *yaml.Node {
	d := mapping()
	set(d, scalar(device), "deviceName")
	snapshot := text(at(from, "snapshotID"))
	switch n := size(at(from, "volumeSize")); {
	case n > 0 && gibibytes > 0:
		set(d, scalar(strconv.Itoa(n)+"Gi"), "ebs", "volumeSize")
	case gibibytes > 0 && snapshot == "":
		set(d, scalar(strconv.Itoa(gibibytes)+"Gi"), "ebs", "volumeSize")
	}
	if snapshot != "" {
		set(d, scalar(snapshot), "ebs", "snapshotID")
	}
	kind := text(at(from, "volumeType"))
	if kind == "" || gibibytes == 0 {
		kind = "gp3"
	}
	set(d, scalar(kind), "ebs", "volumeType")
	if text(at(from, "volumeEncrypted")) == "true" {
		set(d, truth(true), "ebs", "encrypted")
	}
	if key := text(at(from, "volumeKmsKeyID")); key != "" {
		set(d, scalar(key), "ebs", "kmsKeyID")
	}
	for _, field := range []struct{ from, to string }{{"volumeIOPS", "iops"}, {"volumeThroughput", "throughput"}} {
		if n := size(at(from, field.from)); n > 0 && gibibytes > 0 {
			set(d, integer(int64(n)), "ebs", field.to)
		}
	}
	return d
}
