package instance

import (
	"maps"

	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/cloud"
)

// ClassOf extracts the relevant fields from a class: its spec and the resolved resources in its status.
func ClassOf(class *awsv1.EC2NodeClass) Class {
	spec := &class.Spec
	c := Class{
		Name:               class.Name,
		Family:             class.Family(),
		RAID0:              spec.InstanceStorePolicy != nil && *spec.InstanceStorePolicy == awsv1.InstanceStorePolicyRAID0,
		ConnectionTracking: spec.ConnectionTracking != nil,
		PrefixDelegation:   class.PrefixDelegation(),
		Kubelet:            kubeletOf(spec.Kubelet),
	}
	c.VolumeSizes, _ = class.VolumeSizes() // an invalid annotation has no effect, and a condition reports it
	if options := spec.CPUOptions; options != nil && options.NestedVirtualization != nil {
		c.NestedVirtualization = *options.NestedVirtualization == awsv1.Enabled
	}
	for _, ami := range class.Status.AMIs {
		c.Images = append(c.Images, imageOf(ami))
	}
	for _, s := range class.Status.Subnets {
		c.Subnets = append(c.Subnets, Subnet{ID: s.ID, Zone: s.Zone, ZoneID: s.ZoneID})
	}
	for i := range class.Status.CapacityReservations {
		c.Reservations = append(c.Reservations, reservationOf(&class.Status.CapacityReservations[i]))
	}
	for _, m := range spec.BlockDeviceMappings {
		if m.EBS != nil {
			c.Volumes = append(c.Volumes, volumeOf(m))
		}
	}
	for _, i := range spec.NetworkInterfaces {
		c.Interfaces = append(c.Interfaces, Interface{
			Card: int64(i.NetworkCardIndex), Device: int64(i.DeviceIndex), EFAOnly: i.InterfaceType == awsv1.InterfaceTypeEFAOnly,
		})
	}
	return c
}

func imageOf(ami awsv1.AMI) Image {
	image := Image{ID: ami.ID}
	for _, r := range ami.Requirements {
		image.Requirements = append(image.Requirements, requirementOf(r))
	}
	return image
}

func requirementOf(r corev1.NodeSelectorRequirement) cloud.Requirement {
	return cloud.Requirement{Key: r.Key, Operator: string(r.Operator), Values: r.Values}
}

func volumeOf(m awsv1.BlockDeviceMapping) Volume {
	v := Volume{Root: m.RootVolume}
	if m.DeviceName != nil {
		v.Device = *m.DeviceName
	}
	if m.EBS.VolumeSize != nil {
		v.Bytes = m.EBS.VolumeSize.Value()
	}
	return v
}

func kubeletOf(k *awsv1.KubeletConfiguration) Kubelet {
	if k == nil {
		return Kubelet{}
	}
	settings := Kubelet{
		KubeReserved: amountsOnly(k.KubeReserved), SystemReserved: amountsOnly(k.SystemReserved),
		EvictionHard: maps.Clone(k.EvictionHard),
	}
	for _, e := range k.Expressions() {
		switch e.Field {
		case awsv1.FieldMaxPods:
			settings.MaxPodsExpression = e.Text
		case awsv1.FieldKubeReserved:
			settings.KubeExpressions = with(settings.KubeExpressions, e)
		case awsv1.FieldSystemReserved:
			settings.SystemExpressions = with(settings.SystemExpressions, e)
		}
	}
	if number, ok := k.MaxPodsNumber(); ok {
		most := int64(number)
		settings.MaxPods = &most
	}
	if k.PodsPerCore != nil {
		settings.PodsPerCore = int64(*k.PodsPerCore)
	}
	return settings
}

func with(texts map[string]string, e awsv1.Expression) map[string]string {
	if texts == nil {
		texts = map[string]string{}
	}
	texts[e.Resource] = e.Text
	return texts
}

// amountsOnly removes expressions.
func amountsOnly(entries map[string]string) map[string]string {
	amounts := maps.Clone(entries)
	known := awsv1.Reserved(entries)
	maps.DeleteFunc(amounts, func(name, _ string) bool {
		_, is := known[name]
		return !is
	})
	return amounts
}
