// kafkajs: producers, a group, a transaction, admin calls; over TLS, with the certificate named: a producer.
const { readFileSync } = require('fs');
const { Kafka, CompressionTypes, logLevel } = require('kafkajs');

const [bootstrap, topic, certificate] = process.argv.slice(2);
const ssl = certificate ? { ca: [readFileSync(certificate)] } : undefined;
const kafka = new Kafka({ clientId: 'kafkajs', brokers: bootstrap.split(','), ssl, logLevel: logLevel.NOTHING });

async function produce() {
  const producer = kafka.producer();
  await producer.connect();
  for (const compression of [CompressionTypes.None, CompressionTypes.GZIP]) {
    const messages = [...Array(5).keys()].map((n) => ({
      key: `key-${n}`, value: n === 3 ? null : `value ${n}`, headers: { codec: `${compression}`, n: ['a', 'b'] },
    }));
    await producer.send({ topic, compression, messages });
  }
  await producer.send({ topic, acks: 0, messages: [{ value: 'no answer wanted' }] });
  await producer.disconnect();
}

async function transaction() {
  const producer = kafka.producer({ transactionalId: `${topic}.tx`, maxInFlightRequests: 1, idempotent: true });
  await producer.connect();
  for (const end of ['commit', 'abort']) {
    const open = await producer.transaction();
    await open.send({ topic, messages: [{ value: end }] });
    await open.sendOffsets({
      consumerGroupId: `${topic}.tx-group`,
      topics: [{ topic, partitions: [{ partition: 0, offset: '1' }] }],
    });
    await open[end]();
  }
  await producer.disconnect();
}

async function consume() {
  const members = ['first', 'second'].map((name) =>
    new Kafka({ clientId: `kafkajs-${name}`, brokers: bootstrap.split(','), logLevel: logLevel.NOTHING }).consumer({
      groupId: `${topic}.group`, maxWaitTimeInMs: 200, heartbeatInterval: 500, sessionTimeout: 6000,
    }));
  let got = 0;
  const enough = new Promise((done) => { members.forEach((member) => { member.read = () => { got += 1; if (got >= 10) done(); }; }); });
  for (const member of members) {
    await member.connect();
    await member.subscribe({ topic, fromBeginning: true });
    const joined = new Promise((done) => member.on(member.events.GROUP_JOIN, done));
    await member.run({ eachMessage: async () => member.read() });
    await joined;
  }
  await enough;
  for (const member of members) await member.disconnect();
}

async function administer() {
  const admin = kafka.admin();
  await admin.connect();
  await admin.createTopics({ topics: [{ topic: `${topic}.made`, numPartitions: 2 }] });
  await admin.createPartitions({ topicPartitions: [{ topic: `${topic}.made`, count: 3 }] });
  await admin.fetchTopicMetadata({ topics: [topic] });
  await admin.fetchTopicOffsets(topic);
  await admin.fetchOffsets({ groupId: `${topic}.group`, topics: [topic] });
  await admin.setOffsets({ groupId: `${topic}.group`, topic, partitions: [{ partition: 0, offset: '1' }] });
  await admin.describeGroups([`${topic}.group`]);
  await admin.listGroups();
  await admin.describeCluster();
  await admin.describeConfigs({ includeSynonyms: true, resources: [{ type: 2, name: topic }] });
  await admin.alterConfigs({ resources: [{ type: 2, name: topic, configEntries: [{ name: 'retention.ms', value: '600000' }] }] });
  await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: '1' }] });
  const acl = { resourceType: 2, resourceName: topic, resourcePatternType: 3, principal: 'User:mallory', host: '*', operation: 3, permissionType: 2 };
  await admin.createAcls({ acl: [acl] });
  await admin.describeAcls(acl);
  await admin.deleteAcls({ filters: [acl] });
  await admin.listPartitionReassignments({});
  await admin.deleteGroups([`${topic}.group`]);
  await admin.deleteTopics({ topics: [`${topic}.made`] });
  await admin.disconnect();
}

(certificate ? produce() : produce().then(consume).then(transaction).then(administer)).catch((error) => {
  console.error(error);
  process.exit(1);
});
