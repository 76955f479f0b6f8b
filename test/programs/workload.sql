CREATE TABLE part(id INTEGER PRIMARY KEY, name TEXT, size REAL, parent INTEGER REFERENCES part(id));
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
  INSERT INTO part SELECT i, 'part ' || i, i * 1.5, i / 2 FROM n;
CREATE INDEX by_name ON part(name);
CREATE VIEW big AS SELECT * FROM part WHERE size > 2000;
SELECT count(*), sum(size), group_concat(DISTINCT parent % 5) FROM part;
SELECT p.name, count(c.id) FROM part p LEFT JOIN part c ON c.parent = p.id GROUP BY p.id ORDER BY 2 DESC, 1 LIMIT 5;
BEGIN; UPDATE part SET size = size + 1 WHERE id % 3 = 0; DELETE FROM part WHERE id > 1800; ROLLBACK;
SAVEPOINT s; INSERT INTO part(name) VALUES ('x'), ('y'); RELEASE s;
SELECT rank() OVER (ORDER BY size DESC), name FROM big LIMIT 3;
SELECT json_extract('{"a":[1,2,{"b":3}]}', '$.a[2].b'), upper(hex(randomblob(0))), printf('%08.3f', 3.14159);
EXPLAIN QUERY PLAN SELECT * FROM part WHERE name LIKE 'part 1%';
CREATE TRIGGER t AFTER INSERT ON part BEGIN UPDATE part SET size = 0 WHERE id = new.id; END;
INSERT INTO part(name) VALUES ('triggered');
PRAGMA integrity_check;
VACUUM;
.mode box
SELECT name, size FROM part WHERE id < 6;
.schema
