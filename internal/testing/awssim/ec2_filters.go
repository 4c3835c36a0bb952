package awssim

// ec2Filters are the filters of EC2's calls: those of the API reference's page of each call, and none else. With
// method.params they are what acts; any other parameter and filter is refused.
var ec2Filters = map[string]filterTable{
	"DescribeAvailabilityZones": {
		"group-long-name": "groupLongName", "group-name": "groupName", "message": "messageSet>item>message", "opt-in-status": "optInStatus",
		"parent-zone-id": "parentZoneId", "parent-zoneID": "parentZoneId", "parent-zone-name": "parentZoneName",
		"parent-zoneName": "parentZoneName", "region-name": "regionName", "state": "zoneState", "zone-id": "zoneId", "zone-name": "zoneName",
		"zone-type": "zoneType",
	},
	"DescribeSubnets":               subnetFilters.with(tagFilters),
	"DescribeSecurityGroups":        groupFilters.with(tagFilters),
	"DescribeImages":                imageFilters.with(tagFilters),
	"DescribeInstanceTypes":         typeFilters,
	"DescribeInstanceTypeOfferings": {"instance-type": "instanceType", "location": "location"},
	"DescribeSpotPriceHistory": {
		"availability-zone": "availabilityZone", "availability-zone-id": "availabilityZoneId", "instance-type": "instanceType",
		"product-description": "productDescription", "spot-price": "spotPrice", "timestamp": "timestamp",
	},
	"DescribeInstances":      reservationFilters,
	"DescribeInstanceStatus": statusFilters,
	"DescribeVolumeStatus":   volumeFilters,
	"DescribeCapacityReservations": filterTable{
		"availability-zone": "availabilityZone", "availability-zone-id": "availabilityZoneId", "end-date": "endDate",
		"end-date-type": "endDateType", "instance-match-criteria": "instanceMatchCriteria", "instance-platform": "instancePlatform",
		"instance-type": "instanceType", "outpost-arn": "outpostArn", "owner-id": "ownerId", "placement-group-arn": "placementGroupArn",
		"start-date": "startDate", "state": "state", "tenancy": "tenancy",
	}.with(tagFilters),
	"DescribeReservedInstances": filterTable{
		"availability-zone": "availabilityZone", "duration": "duration", "end": "end", "fixed-price": "fixedPrice",
		"instance-type": "instanceType", "product-description": "productDescription", "reserved-instances-id": "reservedInstancesId",
		"scope": "scope", "start": "start", "state": "state", "usage-price": "usagePrice",
	}.with(tagFilters),
	"DescribePlacementGroups": filterTable{
		"group-arn": "groupArn", "group-name": "groupName", "spread-level": "spreadLevel", "state": "state", "strategy": "strategy",
	}.with(tagFilters),
	"DescribeLaunchTemplates": filterTable{"create-time": "createTime", "launch-template-name": "launchTemplateName"}.with(tagFilters),
}

var subnetFilters = filterTable{
	"availability-zone": "availabilityZone", "availabilityZone": "availabilityZone", "availability-zone-id": "availabilityZoneId",
	"availabilityZoneId": "availabilityZoneId", "available-ip-address-count": "availableIpAddressCount", "cidr-block": "cidrBlock",
	"cidr": "cidrBlock", "cidrBlock": "cidrBlock", "customer-owned-ipv4-pool": "customerOwnedIpv4Pool", "default-for-az": "defaultForAz",
	"defaultForAz": "defaultForAz", "enable-dns64": "enableDns64", "enable-lni-at-device-index": "enableLniAtDeviceIndex",
	"ipv6-cidr-block-association.ipv6-cidr-block": "ipv6CidrBlockAssociationSet>item>ipv6CidrBlock",
	"ipv6-cidr-block-association.association-id":  "ipv6CidrBlockAssociationSet>item>associationId",
	"ipv6-cidr-block-association.state":           "ipv6CidrBlockAssociationSet>item>ipv6CidrBlockState>state",
	"ipv6-native":                                 "ipv6Native", "map-customer-owned-ip-on-launch": "mapCustomerOwnedIpOnLaunch",
	"map-public-ip-on-launch": "mapPublicIpOnLaunch", "outpost-arn": "outpostArn", "owner-id": "ownerId",
	"private-dns-name-options-on-launch.hostname-type":                        "privateDnsNameOptionsOnLaunch>hostnameType",
	"private-dns-name-options-on-launch.enable-resource-name-dns-a-record":    "privateDnsNameOptionsOnLaunch>enableResourceNameDnsARecord",
	"private-dns-name-options-on-launch.enable-resource-name-dns-aaaa-record": "privateDnsNameOptionsOnLaunch>enableResourceNameDnsAAAARecord",
	"state": "state", "subnet-arn": "subnetArn", "subnet-id": "subnetId", "vpc-id": "vpcId",
}

// groupFilters have rules of both directions.
var groupFilters = filterTable{
	"description": "groupDescription", "group-id": "groupId", "group-name": "groupName", "owner-id": "ownerId", "vpc-id": "vpcId",
}.with(ruleFilters("", "ipPermissions>item")).with(ruleFilters("egress.", "ipPermissionsEgress>item"))

func ruleFilters(prefix, element string) filterTable {
	all := filterTable{}
	for name, path := range (filterTable{
		"cidr": "ipRanges>item>cidrIp", "from-port": "fromPort", "group-id": "groups>item>groupId", "group-name": "groups>item>groupName",
		"ipv6-cidr": "ipv6Ranges>item>cidrIpv6", "prefix-list-id": "prefixListIds>item>prefixListId", "protocol": "ipProtocol",
		"to-port": "toPort", "user-id": "groups>item>userId",
	}).under(element) {
		all[prefix+"ip-permission."+name] = path
	}
	return all
}

var imageFilters = filterTable{
	"architecture": "architecture", "block-device-mapping.delete-on-termination": "blockDeviceMapping>item>ebs>deleteOnTermination",
	"block-device-mapping.device-name": "blockDeviceMapping>item>deviceName",
	"block-device-mapping.snapshot-id": "blockDeviceMapping>item>ebs>snapshotId",
	"block-device-mapping.volume-size": "blockDeviceMapping>item>ebs>volumeSize",
	"block-device-mapping.volume-type": "blockDeviceMapping>item>ebs>volumeType",
	"block-device-mapping.encrypted":   "blockDeviceMapping>item>ebs>encrypted",
	"creation-date":                    "creationDate", "description": "description", "ena-support": "enaSupport",
	"free-tier-eligible": noFact,
	"hypervisor":         "hypervisor", "image-allowed": "imageAllowed", "image-id": "imageId", "image-type": "imageType", "is-public": "isPublic",
	"image-watermark.source-image-creation-time": noFact, "image-watermark.source-image-id": noFact,
	"image-watermark.source-image-region": noFact, "image-watermark.watermark-creation-time": noFact, "image-watermark.watermark-key": noFact,
	"kernel-id": "kernelId", "manifest-location": "imageLocation", "name": "name", "owner-alias": "imageOwnerAlias",
	"owner-id": "imageOwnerId", "platform": "platform", "product-code": "productCodes>item>productCode",
	"product-code.type": "productCodes>item>type", "public-ssm-parameter-name": noFact, "ramdisk-id": "ramdiskId",
	"root-device-name": "rootDeviceName", "root-device-type": "rootDeviceType", "source-image-id": "sourceImageId",
	"source-image-region": "sourceImageRegion", "source-instance-id": "sourceInstanceId", "state": "imageState",
	"scan-result.critical-fix-available-since": noFact, "scan-result.finding-scan-date": noFact,
	"scan-result.high-fix-available-since": noFact, "scan-result.highest-finding-severity-label": noFact,
	"scan-result.informational-fix-available-since": noFact, "scan-result.low-fix-available-since": noFact,
	"scan-result.medium-fix-available-since": noFact, "state-reason-code": "stateReason>code", "state-reason-message": "stateReason>message",
	"sriov-net-support": "sriovNetSupport", "virtualization-type": "virtualizationType",
}

// typeFilters have no fact where the catalog has none.
var typeFilters = filterTable{
	"auto-recovery-supported": noFact, "bare-metal": "bareMetal", "burstable-performance-supported": "burstablePerformanceSupported",
	"current-generation": "currentGeneration", "dedicated-hosts-supported": noFact, "ebs-info.attachment-limit-type": noFact,
	"ebs-info.maximum-ebs-attachments": noFact, "ebs-info.ebs-optimized-info.baseline-iops": noFact,
	"ebs-info.ebs-optimized-info.maximum-iops":                noFact,
	"ebs-info.ebs-optimized-info.baseline-bandwidth-in-mbps":  "ebsInfo>ebsOptimizedInfo>baselineBandwidthInMbps",
	"ebs-info.ebs-optimized-info.baseline-throughput-in-mbps": "ebsInfo>ebsOptimizedInfo>baselineThroughputInMBps",
	"ebs-info.ebs-optimized-info.maximum-bandwidth-in-mbps":   "ebsInfo>ebsOptimizedInfo>maximumBandwidthInMbps",
	"ebs-info.ebs-optimized-info.maximum-throughput-in-mbps":  "ebsInfo>ebsOptimizedInfo>maximumThroughputInMBps",
	"ebs-info.ebs-optimized-support":                          "ebsInfo>ebsOptimizedSupport",
	"ebs-info.encryption-support":                             "ebsInfo>encryptionSupport",
	"ebs-info.nvme-support":                                   "ebsInfo>nvmeSupport",
	"free-tier-eligible":                                      noFact,
	"hibernation-supported":                                   noFact,
	"hypervisor":                                              "hypervisor",
	"instance-storage-info.disk.count":                        "instanceStorageInfo>disks>item>count",
	"instance-storage-info.disk.size-in-gb":                   "instanceStorageInfo>disks>item>sizeInGB",
	"instance-storage-info.disk.type":                         "instanceStorageInfo>disks>item>type",
	"instance-storage-info.encryption-support":                noFact,
	"instance-storage-info.nvme-support":                      "instanceStorageInfo>nvmeSupport",
	"instance-storage-info.total-size-in-gb":                  "instanceStorageInfo>totalSizeInGB",
	"instance-storage-supported":                              "instanceStorageSupported",
	"instance-type":                                           "instanceType",
	"memory-info.size-in-mib":                                 "memoryInfo>sizeInMiB",
	"network-info.bandwidth-weightings":                       noFact,
	"network-info.efa-info.maximum-efa-interfaces":            "networkInfo>efaInfo>maximumEfaInterfaces",
	"network-info.efa-supported":                              "networkInfo>efaSupported",
	"network-info.ena-support":                                "networkInfo>enaSupport",
	"network-info.flexible-ena-queues-support":                noFact,
	"network-info.encryption-in-transit-supported":            "networkInfo>encryptionInTransitSupported",
	"network-info.ipv4-addresses-per-interface":               "networkInfo>ipv4AddressesPerInterface",
	"network-info.ipv6-addresses-per-interface":               "networkInfo>ipv6AddressesPerInterface",
	"network-info.ipv6-supported":                             "networkInfo>ipv6Supported",
	"network-info.maximum-network-cards":                      "networkInfo>maximumNetworkCards",
	"network-info.maximum-network-interfaces":                 "networkInfo>maximumNetworkInterfaces",
	"network-info.network-performance":                        "networkInfo>networkPerformance",
	"nitro-enclaves-support":                                  "nitroEnclavesSupport",
	"nitro-tpm-support":                                       noFact,
	"nitro-tpm-info.supported-versions":                       noFact,
	"processor-info.supported-architecture":                   "processorInfo>supportedArchitectures>item",
	"processor-info.sustained-clock-speed-in-ghz":             "processorInfo>sustainedClockSpeedInGhz",
	"processor-info.supported-features":                       "processorInfo>supportedFeatures>item",
	"reboot-migration-support":                                noFact,
	"supported-boot-mode":                                     noFact,
	"supported-root-device-type":                              "supportedRootDeviceTypes>item",
	"supported-usage-class":                                   "supportedUsageClasses>item",
	"supported-virtualization-type":                           "supportedVirtualizationTypes>item",
	"vcpu-info.default-cores":                                 "vCpuInfo>defaultCores",
	"vcpu-info.default-threads-per-core":                      "vCpuInfo>defaultThreadsPerCore",
	"vcpu-info.default-vcpus":                                 "vCpuInfo>defaultVCpus",
	"vcpu-info.valid-cores":                                   noFact,
	"vcpu-info.valid-threads-per-core":                        noFact,
}

// volumeFilters are on events and actions too, of which the simulation has none.
var volumeFilters = filterTable{
	"action.code": "actionsSet>item>code", "action.description": "actionsSet>item>description", "action.event-id": "actionsSet>item>eventId",
	"availability-zone": "availabilityZone", "availability-zone-id": "availabilityZoneId", "event.description": "eventsSet>item>description",
	"event.event-id": "eventsSet>item>eventId", "event.event-type": "eventsSet>item>eventType", "event.not-after": "eventsSet>item>notAfter",
	"event.not-before": "eventsSet>item>notBefore", "operator.managed": noFact, "operator.principal": noFact,
	"volume-status.details-name":   "volumeStatus>details>item>name",
	"volume-status.details-status": "volumeStatus>details>item>status", "volume-status.status": "volumeStatus>status",
}

// statusFilters are on the scheduled events too, one of which has to match.
var statusFilters = filterTable{
	"application-status.status": noFact, "attached-ebs-status.status": "attachedEbsStatus>status", "availability-zone": "availabilityZone",
	"availability-zone-id": "availabilityZoneId", "event.code": "eventsSet>item>code", "event.description": "eventsSet>item>description",
	"event.instance-event-id": "eventsSet>item>instanceEventId", "event.not-after": "eventsSet>item>notAfter",
	"event.not-before": "eventsSet>item>notBefore", "event.not-before-deadline": "eventsSet>item>notBeforeDeadline",
	"instance-state-code": "instanceState>code", "instance-state-name": "instanceState>name",
	"instance-status.reachability": "instanceStatus>details>item>status", "instance-status.status": "instanceStatus>status",
	"operator.managed": "operator>managed", "operator.principal": "operator>principal",
	"system-status.reachability": "systemStatus>details>item>status", "system-status.status": "systemStatus>status",
}
