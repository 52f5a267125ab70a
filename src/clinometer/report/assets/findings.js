// The values of the finding tables: on the page once, column by column, read when a table or chart needs them.
const findings = (() => {
  const tables = new Map();

  const unpack = (packed) => (Array.isArray(packed) ? packed : packed.at.map((place) => packed.each[place]));

  function read(id) {
    const { size, folded, columns } = JSON.parse(document.getElementById(id).textContent);
    const kinds = columns.map(({ kind }) => kind);
    const numbers = {}; // estimate, low, high, p, q, n: those that were computed
    const labels = [];
    const cells = columns.map(({ kind, ...fields }) => {
      const lists = Object.entries(fields).map(([name, packed]) => [name, unpack(packed)]);
      if (kind === "label") labels.push(lists[0][1]);
      else Object.assign(numbers, Object.fromEntries(lists));
      const [first, second] = lists.map(([, values]) => values);
      return second ? first.map((low, i) => [low, second[i]]) : first;
    });
    return { size, folded, kinds, cells, labels, numbers };
  }

  function table(id) {
    if (!tables.has(id)) tables.set(id, read(id));
    return tables.get(id);
  }

  return { table };
})();
